// SPDX-License-Identifier: Apache-2.0
// One row of softmax cross entropy by a team (kernels/core/team.hpp).
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::cross_entropy {

/// What label smoothing a puts into the expressions: 1-a and a/V, computed in double.
template <class S>
struct Smoothing {
  Real<S> hit = 1, spread = 0;
  bool on = false;

  Smoothing(double a, std::int64_t vocab)
      : hit(static_cast<Real<S>>(1.0 - a)), spread(static_cast<Real<S>>(a / static_cast<double>(vocab))), on(a > 0) {}
};

template <class S>
struct RowLoss {
  S loss;         ///< 0 without a label
  bool overflow;  ///< a finished value that no output shows left the range
};

/// e_j of section 6.
template <class S>
SHARDPROOF_HD inline S exponential(S z, S top) {
  return round_to<S>(exp_of(real(sub_in_range(z, top))));
}

template <class S>
struct ForwardRow {
  const S* logits;
  S *row_max, *row_sum;
  std::int64_t vocab;  ///< 1 .. 2^22-1: the sum of exponentials is in range
  Smoothing<S> smoothing;

  template <class Team>
  SHARDPROOF_HD RowLoss<S> operator()(const Team& team, std::int64_t row, std::int32_t label) const {
    const S* const z = logits + row * vocab;
    const S top = greatest(team, z);
    const S total = sum_of_exponentials(team, z, top);
    S *const tops = row_max, *const totals = row_sum;
    team.each(1, [=](std::int64_t) {
      tops[row] = top;
      totals[row] = total;
    });
    bool overflow = false;
    if constexpr (std::is_same_v<S, Fixed>) {
      overflow = !(fold_magnitude(team, vocab, [=](std::int64_t j) { return sub_in_range(z[j], top); }) < fixed_limit);
    }
    if (label < 0) return {S{0}, overflow};
    const Real<S> log_total = log_of(real(total));
    S loss;
    if (smoothing.on) {
      const S sum = fold_finished<S>(team, vocab, [=](std::int64_t j) { return z[j]; });
      overflow = overflow || !in_range(sum);
      loss = round_to<S>(((log_total + real(top)) - smoothing.hit * real(z[label])) - smoothing.spread * real(sum));
    } else {
      loss = finish<S>(term(round_to<S>(log_total)) + term(top) - term(z[label]));
    }
    return {loss, overflow || !in_range(loss)};
  }

 private:
  template <class Team>
  SHARDPROOF_HD S greatest(const Team& team, const S* z) const {
    if constexpr (std::is_same_v<S, Fixed>) {
      return Fixed{team.fold(
          vocab, z[0].raw, [=](std::int64_t j) { return z[j].raw; }, Greatest{})};
    } else {
      return team.fold(
          vocab, z[0], [=](std::int64_t j) { return z[j]; }, Greatest{});
    }
  }
  template <class Team>
  SHARDPROOF_HD S sum_of_exponentials(const Team& team, const S* z, S top) const {
    if constexpr (std::is_same_v<S, Fixed>) {
      return Fixed{team.fold(
          vocab, std::int64_t{0}, [=](std::int64_t j) { return exponential(z[j], top).raw; }, Plus{})};
    } else {
      return team.fold(
          vocab, S{0}, [=](std::int64_t j) { return exponential(z[j], top); }, Plus{});
    }
  }
};

template <class S>
struct BackwardRow {
  const S *logits, *row_max, *row_sum;
  S* dlogits;
  std::int64_t vocab;
  Smoothing<S> smoothing;
  Real<S> factor;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t row, std::int32_t label) const {
    using C = Real<S>;
    const S* const z = logits + row * vocab;
    S* const out = dlogits + row * vocab;
    if (label < 0) return team.each(vocab, [=](std::int64_t j) { out[j] = S{0}; });
    const S top = row_max[row];
    const C total = real(row_sum[row]);
    const C hit = smoothing.hit, spread = smoothing.spread, scale = factor;
    // Without smoothing hit is 1 and spread 0, and subtracting 0 is exact: one expression is both.
    team.each(vocab, [=](std::int64_t j) {
      const C p = real(exponential(z[j], top)) / total;
      out[j] = round_to<S>(((p - (j == label ? hit : C(0))) - spread) * scale);
    });
  }
};

}  // namespace shardproof::cross_entropy
