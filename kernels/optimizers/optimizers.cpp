// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizers/optimizers.hpp"

#include <cmath>

#include "kernels/core/require.hpp"
#include "kernels/optimizers/adam_row.hpp"

namespace shardproof::optimizers {

namespace {

template <class S>
Unscale<S> unscale(GradientScale scale) {
  int exponent = 0;
  if (!(std::frexp(scale.loss_scale, &exponent) == 0.5)) {
    throw InternalError("optimizer: the loss scale " + std::to_string(scale.loss_scale) + " is no power of two");
  }
  return {static_cast<Real<S>>(1.0 / scale.loss_scale), static_cast<Real<S>>(scale.clip_factor)};
}

/// b^t by t multiplications, which go on from the last ones: a step asks for the same power for every tensor, and the
/// next step for the next one.
class Power {
 public:
  double operator()(double b, std::int64_t t) {
    if (b != b_ || t < t_) *this = Power(b);
    for (; t_ < t; ++t_) value_ *= b_;
    return value_;
  }
  Power() = default;

 private:
  explicit Power(double b) : b_(b) {}
  double b_ = 1, value_ = 1;
  std::int64_t t_ = 0;
};

}  // namespace

void sgd(Queue& queue, const Tensor& p, const Tensor& g, GradientScale scale, double learning_rate) {
  require_elements("sgd", g, p.elements());
  dispatch(p.dtype(), [&]<class S>(S) {
    const auto factors = unscale<S>(scale);
    queue.submit("sgd", [=](KernelScope& scope) {
      const SgdRow<S> row{scope.update<S>(p), scope.read<S>(g), factors, static_cast<Real<S>>(learning_rate)};
      row(HostTeam<row_lanes<S>>{}, p.elements());
    });
  });
}

void momentum(Queue& queue, const Tensor& p, const Tensor& g, GradientScale scale, double learning_rate, double mu,
              const Tensor& m) {
  require_elements("momentum", g, p.elements());
  require_elements("momentum", m, p.elements());
  dispatch(p.dtype(), [&]<class S>(S) {
    using C = Real<S>;
    const auto factors = unscale<S>(scale);
    queue.submit("momentum", [=](KernelScope& scope) {
      const MomentumRow<S> row{
          scope.update<S>(p), scope.read<S>(g), scope.update<C>(m), factors, static_cast<C>(learning_rate),
          static_cast<C>(mu)};
      row(HostTeam<row_lanes<S>>{}, p.elements());
    });
  });
}

template <class S, bool decoupled>
AdamRow<S, decoupled> adam_row(const GradientScale& scale, const AdamConstants& k) {
  using C = Real<S>;
  thread_local Power power1, power2;
  AdamRow<S, decoupled> row{};
  row.unscale = unscale<S>(scale);
  row.learning_rate = static_cast<C>(k.learning_rate);
  row.beta1 = static_cast<C>(k.beta1);
  row.rest1 = static_cast<C>(1.0 - k.beta1);
  row.beta2 = static_cast<C>(k.beta2);
  row.rest2 = static_cast<C>(1.0 - k.beta2);
  row.correction1 = Correction<C>(1.0 - power1(k.beta1, k.step));
  row.correction2 = Correction<C>(1.0 - power2(k.beta2, k.step));
  row.epsilon = static_cast<C>(k.epsilon);
  row.decay = static_cast<C>(k.learning_rate * k.weight_decay);
  return row;
}
template AdamRow<Fixed, false> adam_row(const GradientScale&, const AdamConstants&);
template AdamRow<Fixed, true> adam_row(const GradientScale&, const AdamConstants&);
template AdamRow<double, false> adam_row(const GradientScale&, const AdamConstants&);
template AdamRow<double, true> adam_row(const GradientScale&, const AdamConstants&);
template AdamRow<float, false> adam_row(const GradientScale&, const AdamConstants&);
template AdamRow<float, true> adam_row(const GradientScale&, const AdamConstants&);

void adam(Queue& queue, const Tensor& p, const Tensor& g, GradientScale scale, const AdamConstants& constants,
          const Tensor& m, const Tensor& v) {
  require_elements("adam", g, p.elements());
  require_elements("adam", m, p.elements());
  require_elements("adam", v, p.elements());
  const auto submit = [&]<class S, bool decoupled>() {
    using C = Real<S>;
    queue.submit("adam", [=, prepared = adam_row<S, decoupled>(scale, constants)](KernelScope& scope) {
      auto row = prepared;
      row.p = scope.update<S>(p);
      row.g = scope.read<S>(g);
      row.m = scope.update<C>(m);
      row.v = scope.update<C>(v);
      row(HostTeam<row_lanes<S>>{}, p.elements());
    });
  };
  dispatch(p.dtype(), [&]<class S>(S) {
    if (constants.decoupled_decay) {
      submit.template operator()<S, true>();
    } else {
      submit.template operator()<S, false>();
    }
  });
}

}  // namespace shardproof::optimizers
