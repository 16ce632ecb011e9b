// SPDX-License-Identifier: Apache-2.0
// One row of an exact product by a team (kernels/core/team.hpp): what a device runs. The CPU's own is tile.hpp.
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::matmul {

/// c[i,j] = fin(sum_k product(a[i,k], b[k,j])) of row-major matrices [m, depth], [depth, columns], [m, columns].
struct ExactProductRow {
  const Fixed *a, *b;
  Fixed* c;
  std::int64_t columns, depth;
  std::uint64_t top_b;  ///< max |raw| of b

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t row) const {
    const Fixed* const left = a + row * depth;
    const auto top_a = fold_magnitude(team, depth, [=](std::int64_t k) { return left[k]; });
    if (fma_sum_fits(top_a, top_b, depth)) {
      write<ByFma>(team, row, left);
    } else {
      write<Defined<Fixed>>(team, row, left);
    }
  }

 private:
  template <class A, class Team>
  SHARDPROOF_HD void write(const Team& team, std::int64_t row, const Fixed* left) const {
    const auto inner = depth, width = columns;
    const Fixed* const right = b;
    Fixed* const out = c + row * width;
    team.each(width, [=](std::int64_t j) {
      typename A::Unfinished sum{};
      for (std::int64_t k = 0; k < inner; ++k) sum += A::product(left[k], right[k * width + j]);
      out[j] = A::finish(sum);
    });
  }
};

}  // namespace shardproof::matmul
