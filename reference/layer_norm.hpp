// SPDX-License-Identifier: Apache-2.0
// Layer norm over rows (ARITHMETIC.md, sections 5 and 7). x, y [n, H]; w, b [H].
#pragma once

#include "reference/arithmetic.hpp"

namespace shardproof::reference {

template <class S>
struct NormSaved {
  Array<S> input;
  std::vector<S> mean, rstd;  ///< of each row
};

template <class S>
Array<S> layer_norm(Arithmetic<S>& arithmetic, const Array<S>& x, const Array<S>& w, const Array<S>& b, double epsilon,
                    NormSaved<S>& saved);

/// dx
template <class S>
Array<S> layer_norm_input(Arithmetic<S>& arithmetic, const NormSaved<S>& saved, const Array<S>& w, const Array<S>& dy);

/// dw += ..., db += ...
template <class S>
void layer_norm_weight(Arithmetic<S>& arithmetic, const NormSaved<S>& saved, const Array<S>& dy, Array<Sum<S>>& dw,
                       Array<Sum<S>>& db);

}  // namespace shardproof::reference
