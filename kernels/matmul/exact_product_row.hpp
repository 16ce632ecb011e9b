// SPDX-License-Identifier: Apache-2.0
// One row of an exact product by a team (kernels/core/team.hpp): what a device runs. The CPU's own is tile.hpp.
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::matmul {

/// c[i,j] = fin(bias[j] + sum_k product(a(i,k), b(k,j))), c row-major with `columns` columns.
struct ExactProductRow {
  /// Element (i, j) at data[i * row_stride + j * column_stride].
  struct Matrix {
    const Fixed* data;
    std::int64_t row_stride, column_stride;

    SHARDPROOF_HD Fixed operator()(std::int64_t i, std::int64_t j) const {
      return data[i * row_stride + j * column_stride];
    }
  };

  Matrix a, b;
  const Fixed* bias;  ///< nullptr: none
  Fixed* c;
  std::int64_t columns, depth;
  std::uint64_t top_b, top_bias;  ///< max |raw| of b and of bias

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t row) const {
    const Matrix left = a;
    const auto top_a = fold_magnitude(team, depth, [=](std::int64_t k) { return left(row, k); });
    // The products sum to less than 2^61, so that 64 bits hold the sum with a bias in range.
    if (fma_sum_fits(top_a, top_b, depth) && top_bias < fixed_limit) {
      write<ByFma>(team, row);
    } else {
      write<Defined<Fixed>>(team, row);
    }
  }

 private:
  template <class A, class Team>
  SHARDPROOF_HD void write(const Team& team, std::int64_t row) const {
    const auto inner = depth;
    const Matrix left = a, right = b;
    const Fixed* const start = bias;
    Fixed* const out = c + row * columns;
    team.each(columns, [=](std::int64_t j) {
      typename A::Unfinished sum = start != nullptr ? A::term(start[j]) : typename A::Unfinished{};
      for (std::int64_t k = 0; k < inner; ++k) sum += A::product(left(row, k), right(k, j));
      out[j] = A::finish(sum);
    });
  }
};

}  // namespace shardproof::matmul
