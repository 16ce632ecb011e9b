// SPDX-License-Identifier: Apache-2.0
#include "reference/cross_entropy.hpp"

#include <algorithm>

#include "kernels/core/functions.hpp"

namespace shardproof::reference {

template <class S>
CrossEntropySaved<S> cross_entropy(Arithmetic<S>& arithmetic, const Array<S>& logits,
                                   std::span<const std::int32_t> labels, double smoothing, std::vector<S>& losses) {
  using C = Real<S>;
  const auto vocab = logits.columns();
  CrossEntropySaved<S> saved{logits, std::vector<S>(logits.rows()), std::vector<S>(logits.rows())};
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    const S* z = logits[i];
    const S max = *std::max_element(z, z + vocab);
    Sum<S> total{}, sum_z{};
    for (std::int64_t j = 0; j < vocab; ++j) {
      total += term(arithmetic.round(exp_of(real(arithmetic.sub(z[j], max)))));
      sum_z += term(z[j]);
    }
    const S sum = arithmetic.finish(total);
    saved.max[i] = max;
    saved.sum[i] = sum;
    if (labels[i] < 0) continue;
    const S target = z[labels[i]];
    if (smoothing == 0) {
      losses.push_back(arithmetic.finish(term(arithmetic.round(log_of(real(sum)))) + term(max) - term(target)));
    } else {
      const C hit = C(1 - smoothing), spread = C(smoothing / static_cast<double>(vocab));
      losses.push_back(arithmetic.round(((log_of(real(sum)) + real(max)) - hit * real(target)) -
                                        spread * real(arithmetic.finish(sum_z))));
    }
  }
  return saved;
}

template <class S>
Array<S> cross_entropy_input(Arithmetic<S>& arithmetic, const CrossEntropySaved<S>& saved,
                             std::span<const std::int32_t> labels, double smoothing, double factor) {
  using C = Real<S>;
  const auto& logits = saved.logits;
  const auto vocab = logits.columns();
  const C hit = C(1 - smoothing), spread = C(smoothing / static_cast<double>(vocab));
  Array<S> dz(logits.rows(), vocab);
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    if (labels[i] < 0) continue;
    for (std::int64_t j = 0; j < vocab; ++j) {
      const C is_target = j == labels[i] ? C(1) : C(0);
      const S e = arithmetic.round(exp_of(real(arithmetic.sub(logits[i][j], saved.max[i]))));
      const C p = real(e) / real(saved.sum[i]);
      dz[i][j] =
          arithmetic.round(smoothing == 0 ? (p - is_target) * C(factor) : ((p - hit * is_target) - spread) * C(factor));
    }
  }
  return dz;
}

#define INSTANTIATE(S)                                                                                                 \
  template CrossEntropySaved<S> cross_entropy<S>(Arithmetic<S>&, const Array<S>&, std::span<const std::int32_t>,       \
                                                 double, std::vector<S>&);                                             \
  template Array<S> cross_entropy_input<S>(Arithmetic<S>&, const CrossEntropySaved<S>&, std::span<const std::int32_t>, \
                                           double, double);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
