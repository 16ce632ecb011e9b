// SPDX-License-Identifier: Apache-2.0
#include "kernels/norms/norms.hpp"

#include <algorithm>

#include "kernels/core/fixed_row.hpp"

namespace shardproof::norms {

namespace {

/// The sum of up to 2^28 squares, as lanes with their carries passed on: one term of a wide sum.
///
/// A square is that of a magnitude's 32-bit halves, high^2 2^64 + 2 high low 2^32 + low^2; the 32-bit halves of those
/// three products are summed apart, each in 64 bits, in a loop that vectorises.
WideSum sum_of_squares(const Fixed* x, std::int64_t n) {
  constexpr std::uint64_t half = 0xffffffff;
  std::uint64_t low[2] = {}, cross[2] = {}, high[2] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t value = magnitude(x[i]), a = value >> 32, b = value & half;
    const std::uint64_t aa = a * a, ab = a * b, bb = b * b;
    low[0] += bb & half;
    low[1] += bb >> 32;
    cross[0] += ab & half;
    cross[1] += ab >> 32;
    high[0] += aa & half;
    high[1] += aa >> 32;
  }
  std::uint64_t lane[4] = {low[0], low[1] + 2 * cross[0], 2 * cross[1] + high[0], high[1]};
  WideSum sum;
  for (std::size_t k = 0; k < 3; ++k) {
    lane[k + 1] += lane[k] >> 32;
    sum.lane[k] = static_cast<std::int64_t>(lane[k] & half);
  }
  sum.lane[3] = static_cast<std::int64_t>(lane[3]);
  return sum;
}

}  // namespace

void sum_of_squares(Queue& queue, const Tensor& x, const WideTotal& total) {
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit("sum_of_squares", [=](KernelScope& scope) {
      const S* const data = scope.read<S>(x);
      if constexpr (std::is_same_v<S, Fixed>) {
        constexpr std::int64_t block = 1 << 20;
        auto* const lane = scope.update<std::int64_t>(total.tensor());
        for (std::int64_t i = 0; i < x.elements(); i += block) {
          const auto sum = sum_of_squares(data + i, std::min(block, x.elements() - i));
          for (std::size_t k = 0; k < sum.lane.size(); ++k) lane[k] += sum.lane[k];
        }
      } else {
        const auto square = [=](std::int64_t i) { return static_cast<double>(data[i]) * static_cast<double>(data[i]); };
        *scope.update<double>(total.tensor()) += HostTeam<64>{}.fold(x.elements(), 0.0, square, Plus{});
      }
    });
  });
}

}  // namespace shardproof::norms
