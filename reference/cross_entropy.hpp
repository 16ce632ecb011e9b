// SPDX-License-Identifier: Apache-2.0
// Softmax cross entropy with label smoothing (ARITHMETIC.md, section 6). Logits z [T, V]; label -1: none.
#pragma once

#include <span>

#include "reference/arithmetic.hpp"

namespace shardproof::reference {

template <class S>
struct CrossEntropySaved {
  Array<S> logits;
  std::vector<S> max, sum;  ///< of each position: max z, and Z
};

/// Appends the loss of every position with a label to `losses`.
template <class S>
CrossEntropySaved<S> cross_entropy(Arithmetic<S>& arithmetic, const Array<S>& logits,
                                   std::span<const std::int32_t> labels, double smoothing, std::vector<S>& losses);

/// dz; factor = scale/N (of no matter where no position has a label).
template <class S>
Array<S> cross_entropy_input(Arithmetic<S>& arithmetic, const CrossEntropySaved<S>& saved,
                             std::span<const std::int32_t> labels, double smoothing, double factor);

}  // namespace shardproof::reference
