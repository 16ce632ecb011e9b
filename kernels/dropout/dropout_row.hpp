// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::dropout {

/// y = kept ? mul(x, k) : 0
template <class S>
struct KeepRow {
  const S* x;
  const std::uint8_t* mask;
  S* y;
  S k;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    if constexpr (std::is_same_v<S, Fixed>) {
      const S* const in = x;
      const auto top = fold_magnitude(team, n, [=](std::int64_t i) { return in[i]; });
      if (fma_fits(top, magnitude(k))) return write<ByFma>(team, n);
    }
    write<Defined<S>>(team, n);
  }

 private:
  template <class A, class Team>
  SHARDPROOF_HD void write(const Team& team, std::int64_t n) const {
    const S* const in = x;
    const std::uint8_t* const kept = mask;
    S* const out = y;
    const S factor = k;
    team.each(n, [=](std::int64_t i) {
      const S scaled = A::finish(A::product(in[i], factor));
      if constexpr (std::is_same_v<S, Fixed>) {
        out[i].raw = scaled.raw & -std::int64_t{kept[i]};
      } else {
        out[i] = kept[i] != 0 ? scaled : S{0};
      }
    });
  }
};

}  // namespace shardproof::dropout
