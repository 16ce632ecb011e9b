// SPDX-License-Identifier: Apache-2.0
// SGD, with and without momentum, on elements begin..begin+count-1 by a team (kernels/core/team.hpp).
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::optimizers {

/// g = (D(G)/loss_scale)*clip_factor. The scale is a power of two: multiplying by its inverse is dividing.
template <class S>
struct Unscale {
  Real<S> inverse_loss_scale, clip_factor;

  SHARDPROOF_HD Real<S> operator()(S raw) const { return (real(raw) * inverse_loss_scale) * clip_factor; }
};

/// p = fin(p - R(lr*g))
template <class S>
struct SgdRow {
  S* p;
  const S* g;
  Unscale<S> unscale;
  Real<S> learning_rate;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    const auto row = *this;
    team.each(n, [=](std::int64_t i) {
      row.p[i] = sub_in_range(row.p[i], round_to<S>(row.learning_rate * row.unscale(row.g[i])));
    });
  }
};

/// m = mu*m + g;  p = fin(p - R(lr*m))
template <class S>
struct MomentumRow {
  S* p;
  const S* g;
  Real<S>* m;
  Unscale<S> unscale;
  Real<S> learning_rate, mu;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    const auto row = *this;
    team.each(n, [=](std::int64_t i) {
      const auto momentum = row.mu * row.m[i] + row.unscale(row.g[i]);
      row.m[i] = momentum;
      row.p[i] = sub_in_range(row.p[i], round_to<S>(row.learning_rate * momentum));
    });
  }
};

}  // namespace shardproof::optimizers
