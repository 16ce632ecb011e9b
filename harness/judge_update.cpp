// SPDX-License-Identifier: Apache-2.0
// Every quantity is a sum of terms; n roundings along the way to it, constants converted to C included, move it by at
// most n u (sum of |terms|), to first order. Second order is below 40^2 u^2 and is covered by `safety`. A result that
// is subnormal is off by `tiny` at most instead.
#include "harness/judge_update.hpp"

#include <cmath>

namespace shardproof::harness {

namespace {

constexpr double safety = 1.01;

double power(double b, std::int64_t t) {
  double result = 1;
  for (std::int64_t k = 0; k < t; ++k) result *= b;
  return result;
}

}  // namespace

UpdateBounds update_bounds(const workload::Workload& workload, const workload::Parameter& parameter,
                           const UpdateInput& input, double u, double tiny) {
  using workload::OptimizerKind;
  const auto n = input.parameter.size();
  UpdateBounds bounds;
  bounds.parameter.assign(n, 0);
  if (!parameter.trainable) return bounds;

  const double rate = std::fabs(input.learning_rate);
  const bool adam = workload.optimizer == OptimizerKind::adam || workload.optimizer == OptimizerKind::adamw;
  if (workload.optimizer != OptimizerKind::sgd) bounds.first.resize(n);
  if (adam) bounds.second.resize(n);
  const double b1 = workload.beta1, b2 = workload.beta2;
  const double dg = input.gradient_error;
  const double c1 = 1 - power(b1, input.taken), c2 = 1 - power(b2, input.taken);
  const double decay =
      workload.optimizer == OptimizerKind::adamw && parameter.decays ? rate * std::fabs(workload.weight_decay) : 0;

  for (std::size_t i = 0; i < n; ++i) {
    const double p = std::fabs(input.parameter[i]);
    const double g = std::fabs(input.gradient[i] * input.clip_factor);  // 2: f, product
    double step = 0, error = 0;  // magnitude of what is subtracted from p (its terms' sum), and its error
    if (workload.optimizer == OptimizerKind::sgd) {
      step = rate * g;  // 4: g's 2, lr, product
      error = (4 * u + dg) * step + 2 * tiny;
    } else if (workload.optimizer == OptimizerKind::momentum) {
      const double m = workload.momentum * std::fabs(input.first[i]) + g;  // 3: mu, product, sum; or g's 2, sum
      bounds.first[i] = safety * ((3 * u + dg) * m + 3 * tiny);
      step = rate * m;  // 5: m's 3, lr, product
      error = (5 * u + dg) * step + (3 * rate + 1) * tiny;
    } else {
      const double m = b1 * std::fabs(input.first[i]) + (1 - b1) * g;  // 5: g's 2, constant, product, sum
      const double v = b2 * input.second[i] + (1 - b2) * g * g;        // 8: g's 2 twice, constant, 2 products, sum
      bounds.first[i] = safety * ((5 * u + dg) * m + 3 * tiny);
      bounds.second[i] = safety * ((8 * u + 2 * dg) * v + 4 * tiny);
      // sqrt halves the 10 of v/c2 (v's 8, constant, quotient) and adds its own, the sum with eps (whose constant is 1)
      // one more: 7 on the whole. v's 4 tiny move sqrt(v/c2) by sqrt(4 tiny/c2) at most.
      const double root = std::sqrt(v / c2), divisor = root + workload.epsilon;
      const double lost = std::sqrt(4 * tiny / c2) / divisor;
      // 17: m's 5, constant, quotient; lr, product; divisor's 7; quotient. dg once in m, half of twice in the root.
      step = divisor > 0 ? (rate * (m / c1)) / divisor : 0;
      // Where they are subnormal: m's 3 tiny and m/c1's one, divided by c1 at most; lr's product, divided by the
      // divisor; the quotient.
      error = (17 * u + 2 * dg + input.correction_error + lost) * step +
              (divisor > 0 ? (4 * rate / (c1 * divisor) + 1 / divisor + 1) * tiny : 0);
      error += 3 * u * decay * p + u * (step + decay * p) + tiny;  // lr*wd, product with p, and the sum
      step += decay * p;
    }
    bounds.parameter[i] = safety * (error + u * (p + step));
  }
  return bounds;
}

}  // namespace shardproof::harness
