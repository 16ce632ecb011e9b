// SPDX-License-Identifier: Apache-2.0
// A square of vectors transposed in registers: log2(width) exchanges of blocks between rows.
#pragma once

#include <utility>

namespace shardproof::matmul {

namespace detail {

/// Swaps the off-diagonal blocks of size `step` of two rows.
template <int step, class Vector, int... l>
[[gnu::always_inline]] inline void exchange(Vector& a, Vector& b, std::integer_sequence<int, l...>) {
  constexpr int width = sizeof...(l);
  const Vector first = __builtin_shufflevector(a, b, ((l & step) != 0 ? width + l - step : l)...);
  b = __builtin_shufflevector(a, b, ((l & step) != 0 ? width + l : l + step)...);
  a = first;
}

}  // namespace detail

/// Vector: of `width` elements.
template <int step = 1, class Vector, int width>
[[gnu::always_inline]] inline void transpose(Vector (&row)[width]) {
  if constexpr (step < width) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) {
      if ((i & step) == 0) detail::exchange<step>(row[i], row[i + step], std::make_integer_sequence<int, width>());
    }
    transpose<2 * step>(row);
  }
}

}  // namespace shardproof::matmul
