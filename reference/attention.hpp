// SPDX-License-Identifier: Apache-2.0
// Attention of one sample (ARITHMETIC.md, sections 5 and 7). query, output [T, heads * head_size]; key, value
// [T, kv_heads * head_size]; probabilities and their mask [heads * T, T]: row h * T + i, column j.
#pragma once

#include <span>

#include "reference/dropout.hpp"

namespace shardproof::reference {

struct AttentionShape {
  std::int64_t heads, kv_heads;
  std::int64_t window;                      ///< 0: none
  std::span<const std::int32_t> documents;  ///< of each position

  /// Whether query i sees key j.
  bool visible(std::int64_t i, std::int64_t j) const {
    return j <= i && documents[i] == documents[j] && (window == 0 || i - j < window);
  }
};

template <class S>
struct AttentionSaved {
  Array<S> query, key, value;
  Dropout<S> dropout;
  Array<S> probability, probability_dropped;  ///< the second without elements when dropout is off
  Array<S> output;
};

/// Reads query, key, value and dropout; fills the rest.
template <class S>
void attend(Arithmetic<S>& arithmetic, const AttentionShape& shape, AttentionSaved<S>& saved);

template <class S>
struct AttentionGradient {
  Array<S> query, key, value;
};
template <class S>
AttentionGradient<S> attend_input(Arithmetic<S>& arithmetic, const AttentionShape& shape,
                                  const AttentionSaved<S>& saved, const Array<S>& doutput);

}  // namespace shardproof::reference
