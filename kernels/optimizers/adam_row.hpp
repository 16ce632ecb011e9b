// SPDX-License-Identifier: Apache-2.0
// Adam and AdamW by a team (kernels/core/team.hpp).
#pragma once

#include "kernels/optimizers/gradient_row.hpp"

namespace shardproof::optimizers {

/// x/(1-b^t). In float by a reciprocal (divide_by says where the result is the same): divisions bound Adam's speed.
template <class C>
struct Correction {
  C divisor = 1, inverse = 1;

  Correction() = default;
  explicit Correction(double c) : divisor(static_cast<C>(c)), inverse(C(1) / divisor) {}
  SHARDPROOF_HD C of(C x) const {
    if constexpr (std::is_same_v<C, float>) {
      return divide_by(x, divisor, inverse);
    } else {
      return x / divisor;
    }
  }
};

/// m = b1*m + (1-b1)*g;  v = b2*v + ((1-b2)*g)*g;
/// p = fin(p - R((lr*(m/(1-b1^t)))/(sqrt(v/(1-b2^t))+eps) [+ (lr*wd)*D(p) if decoupled]))
template <class S, bool decoupled>
struct AdamRow {
  using C = Real<S>;
  S* p;
  const S* g;
  C *m, *v;
  Unscale<S> unscale;
  C learning_rate, beta1, rest1, beta2, rest2;  ///< rest: 1-b
  Correction<C> correction1, correction2;
  C epsilon, decay;  ///< eps, lr*wd

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    const auto row = *this;
    team.each(n, [=](std::int64_t i) {
      const C gradient = row.unscale(row.g[i]);
      const C first = row.beta1 * row.m[i] + row.rest1 * gradient;
      const C second = row.beta2 * row.v[i] + (row.rest2 * gradient) * gradient;
      row.m[i] = first;
      row.v[i] = second;
      C step = (row.learning_rate * row.correction1.of(first)) / (std::sqrt(row.correction2.of(second)) + row.epsilon);
      if constexpr (decoupled) step = step + row.decay * real(row.p[i]);
      row.p[i] = sub_in_range(row.p[i], round_to<S>(step));
    });
  }
};

struct GradientScale;
struct AdamConstants;
/// The row of one update (optimizers.hpp), all but where its tensors lie.
template <class S, bool decoupled>
AdamRow<S, decoupled> adam_row(const GradientScale& scale, const AdamConstants& constants);

}  // namespace shardproof::optimizers
