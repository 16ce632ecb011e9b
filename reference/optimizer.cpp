// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizer.hpp"

#include <cmath>

namespace shardproof::reference {
namespace {

double power(double base, std::int64_t exponent) {
  double out = 1;
  for (std::int64_t k = 0; k < exponent; ++k) out *= base;
  return out;
}

}  // namespace

template <class S>
void optimize(Arithmetic<S>& arithmetic, const workload::Workload& workload, const Update& update,
              const Array<S>& gradient, Parameter<S>& parameter) {
  using C = Real<S>;
  using enum workload::OptimizerKind;
  const auto kind = workload.optimizer;
  const C lr = C(update.learning_rate), mu = C(workload.momentum), epsilon = C(workload.epsilon);
  const C b1 = C(workload.beta1), b2 = C(workload.beta2);
  const C one_minus_b1 = C(1 - workload.beta1), one_minus_b2 = C(1 - workload.beta2);
  const C correction1 = C(1 - power(workload.beta1, update.t)), correction2 = C(1 - power(workload.beta2, update.t));
  const C decay = C(update.learning_rate * (parameter.info.decays ? workload.weight_decay : 0.0));
  for (std::int64_t i = 0; i < gradient.rows(); ++i) {
    for (std::int64_t j = 0; j < gradient.columns(); ++j) {
      const C g = (real(gradient[i][j]) / C(update.scale)) * C(update.clip_factor);
      S& p = parameter.value[i][j];
      C& first = parameter.first[i][j];
      C& second = parameter.second[i][j];
      C change;
      if (kind == sgd) {
        change = lr * g;
      } else if (kind == momentum) {
        first = mu * first + g;
        change = lr * first;
      } else {
        first = b1 * first + one_minus_b1 * g;
        second = b2 * second + (one_minus_b2 * g) * g;
        change = (lr * (first / correction1)) / (std::sqrt(second / correction2) + epsilon);
        if (kind == adamw) change = change + decay * real(p);
      }
      p = arithmetic.sub(p, arithmetic.round(change));
    }
  }
}

#define INSTANTIATE(S) \
  template void optimize<S>(Arithmetic<S>&, const workload::Workload&, const Update&, const Array<S>&, Parameter<S>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
