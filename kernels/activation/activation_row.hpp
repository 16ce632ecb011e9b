// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::activation {

template <class S>
struct Gelu {
  static SHARDPROOF_HD S forward(S x) { return round_to<S>(gelu_of(real(x))); }
  static SHARDPROOF_HD S backward(S x, S dy) { return round_to<S>(real(dy) * gelu_derivative_of(real(x))); }
};

template <class S>
struct Relu {
  static SHARDPROOF_HD S forward(S x) { return x > S{0} ? x : S{0}; }
  static SHARDPROOF_HD S backward(S x, S dy) { return x > S{0} ? dy : S{0}; }
};

/// y = f(x)
template <class F, class S>
struct ForwardRow {
  const S* x;
  S* y;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    const S* const in = x;
    S* const out = y;
    team.each(n, [=](std::int64_t i) { out[i] = F::forward(in[i]); });
  }
};

/// dx = dy f'(x)
template <class F, class S>
struct BackwardRow {
  const S *x, *dy;
  S* dx;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    const S *const in = x, *const gradient = dy;
    S* const out = dx;
    team.each(n, [=](std::int64_t i) { out[i] = F::backward(in[i], gradient[i]); });
  }
};

}  // namespace shardproof::activation
