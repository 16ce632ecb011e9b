// SPDX-License-Identifier: Apache-2.0
// Operands of the exact product as the register tile reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/matmul/gemm.hpp"
#include "kernels/matmul/tile.hpp"
#include "kernels/matmul/transpose.hpp"

namespace shardproof::matmul {

namespace detail {

/// to[k * width + i] = from(i, k) * scale for i, k < lanes; rows of `from` are contiguous.
inline void pack_square(const Fixed* from, std::int64_t row_stride, double scale, double* to, std::int64_t width) {
  Reals row[lanes];
#pragma GCC unroll 8
  for (int i = 0; i < lanes; ++i) {
    Integers raw;
    std::memcpy(&raw, from + i * row_stride, sizeof raw);
    row[i] = __builtin_convertvector(raw, Reals) * scale;
  }
  transpose(row);
#pragma GCC unroll 8
  for (int k = 0; k < lanes; ++k) std::memcpy(to + k * width, &row[k], sizeof row[k]);
}

}  // namespace detail

/// Panels of `panel` rows of v, the last one of what is left rounded up to `unit`: each holds v(i, k) * scale at
/// [k][i], and 0 where there is no row.
template <int panel, int unit>
void pack(View<Fixed> v, std::int64_t rows, std::int64_t depth, double scale, double* packed) {
  const auto width_at = [rows](std::int64_t i) {
    return std::min<std::int64_t>(panel, (rows - i + unit - 1) / unit * unit);
  };
  const auto value = [&](std::int64_t i, std::int64_t k) {
    return static_cast<double>(v.data[i * v.row_stride + k * v.column_stride].raw) * scale;
  };
  if (v.row_stride == 1) {
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t i0 = 0; i0 < rows; i0 += panel) {
        const auto width = width_at(i0), used = std::min(width, rows - i0);
        double* const to = packed + i0 * depth + k * width;
        const Fixed* const from = v.data + i0 + k * v.column_stride;
        for (std::int64_t i = 0; i < used; ++i) to[i] = static_cast<double>(from[i].raw) * scale;
        for (std::int64_t i = used; i < width; ++i) to[i] = 0;
      }
    }
    return;
  }
  for (std::int64_t i0 = 0; i0 < rows; i0 += panel) {
    const auto width = width_at(i0), used = std::min(width, rows - i0);
    double* const to = packed + i0 * depth;
    std::int64_t i = 0;
    for (; i + lanes <= used; i += lanes) {
      std::int64_t k = 0;
      for (; k + lanes <= depth; k += lanes) {
        detail::pack_square(v.data + (i0 + i) * v.row_stride + k, v.row_stride, scale, to + k * width + i, width);
      }
      for (; k < depth; ++k) {
        for (int l = 0; l < lanes; ++l) to[k * width + i + l] = value(i0 + i + l, k);
      }
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t r = i; r < width; ++r) to[k * width + r] = r < used ? value(i0 + r, k) : 0.0;
    }
  }
}

}  // namespace shardproof::matmul
