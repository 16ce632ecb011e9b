// SPDX-License-Identifier: Apache-2.0
// One row of softmax cross entropy, or a slice of it, by a team (kernels/core/team.hpp).
#pragma once

#include <limits>

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

/// e_j of section 6.
template <class S>
SHARDPROOF_HD inline S exponential(S z, S top) {
  return round_to<S>(exp_of(real(sub_in_range(z, top))));
}

/// The maximum of no numbers.
template <class S>
SHARDPROOF_HD constexpr S lowest() {
  if constexpr (std::is_same_v<S, Fixed>) {
    return Fixed{1 - fixed_limit};
  } else {
    return -std::numeric_limits<S>::infinity();
  }
}

/// max z of the row's columns here.
template <class S>
struct MaximumRow {
  const S* logits;
  S* row_max;
  std::int64_t columns;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t row) const {
    const S top = greatest(team, logits + row * columns);
    S* const tops = row_max;
    team.each(1, [=](std::int64_t) { tops[row] = top; });
  }

 private:
  template <class Team>
  SHARDPROOF_HD S greatest(const Team& team, const S* z) const {
    if constexpr (std::is_same_v<S, Fixed>) {
      return Fixed{team.fold(
          columns, lowest<S>().raw, [=](std::int64_t j) { return z[j].raw; }, Greatest{})};
    } else {
      return team.fold(
          columns, lowest<S>(), [=](std::int64_t j) { return z[j]; }, Greatest{});
    }
  }
};

/// Sums over the row's columns here, tokens first .. first+columns-1. Returns whether a finished value that no output
/// shows left the range.
template <class S>
struct SumsRow {
  const S *logits, *row_max;
  S *row_sum, *target;
  Sum<S>* logit_sum;  ///< nullptr: not needed
  std::int64_t columns, first;

  template <class Team>
  SHARDPROOF_HD bool operator()(const Team& team, std::int64_t row, std::int32_t label) const {
    const S* const z = logits + row * columns;
    const S top = row_max[row];
    const S total = sum_of_exponentials(team, z, top);
    const auto at = label - first;
    const S hit = at >= 0 && at < columns ? z[at] : S{0};
    S *const totals = row_sum, *const targets = target;
    team.each(1, [=](std::int64_t) {
      totals[row] = total;
      targets[row] = hit;
    });
    if (logit_sum != nullptr) {
      const auto sum = label >= 0 ? sum_of_logits(team, z) : Sum<S>{};
      Sum<S>* const sums = logit_sum;
      team.each(1, [=](std::int64_t) { sums[row] = sum; });
    }
    if constexpr (std::is_same_v<S, Fixed>) {
      return !(fold_magnitude(team, columns, [=](std::int64_t j) { return sub_in_range(z[j], top); }) < fixed_limit);
    }
    return false;
  }

 private:
  template <class Team>
  SHARDPROOF_HD S sum_of_exponentials(const Team& team, const S* z, S top) const {
    if constexpr (std::is_same_v<S, Fixed>) {
      return Fixed{team.fold(
          columns, std::int64_t{0}, [=](std::int64_t j) { return exponential(z[j], top).raw; }, Plus{})};
    } else {
      return team.fold(
          columns, S{0}, [=](std::int64_t j) { return exponential(z[j], top); }, Plus{});
    }
  }
  template <class Team>
  SHARDPROOF_HD Sum<S> sum_of_logits(const Team& team, const S* z) const {
    return team.fold(
        columns, Sum<S>{}, [=](std::int64_t j) { return term(z[j]); }, Plus{});
  }
};

/// The loss of a row with a label, from its finished values; smoothing alone reads logit_sum.
template <class S>
SHARDPROOF_HD inline S loss_of(const Smoothing<S>& smoothing, S row_max, S row_sum, S target, S logit_sum) {
  const Real<S> log_total = log_of(real(row_sum));
  if (!smoothing.on) return finish<S>(term(round_to<S>(log_total)) + term(row_max) - term(target));
  return round_to<S>(((log_total + real(row_max)) - smoothing.hit * real(target)) - smoothing.spread * real(logit_sum));
}

/// dz of the row's columns here.
template <class S>
struct BackwardRow {
  const S *logits, *row_max, *row_sum;
  S* dlogits;
  std::int64_t columns, first;
  Smoothing<S> smoothing;
  Real<S> factor;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t row, std::int32_t label) const {
    using C = Real<S>;
    const S* const z = logits + row * columns;
    S* const out = dlogits + row * columns;
    if (label < 0) return team.each(columns, [=](std::int64_t j) { out[j] = S{0}; });
    const S top = row_max[row];
    const C total = real(row_sum[row]);
    const C hit = smoothing.hit, spread = smoothing.spread, scale = factor;
    const auto at = label - first;
    // Without smoothing hit is 1 and spread 0, and subtracting 0 is exact: one expression is both.
    team.each(columns, [=](std::int64_t j) {
      const C p = real(exponential(z[j], top)) / total;
      out[j] = round_to<S>(((p - (j == at ? hit : C(0))) - spread) * scale);
    });
  }
};

}  // namespace shardproof::cross_entropy
