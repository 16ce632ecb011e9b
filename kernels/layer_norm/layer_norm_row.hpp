// SPDX-License-Identifier: Apache-2.0
// One row of layer norm, forward and input gradient, by a team (kernels/core/team.hpp).
//
// Fixed rows are first scanned for magnitudes. These decide whether products may be made by FMA (fixed_row.hpp), and
// show overflow of what no output shows: d = fin(x-m) and xh = mul(d,s) are largest together, since rounding is
// monotone.
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::layer_norm {

/// max |xh| of a row whose max |x-m| is `top`; invalid if some d or xh is.
SHARDPROOF_HD inline Fixed top_normalised(std::uint64_t top, Fixed s) {
  return top < fixed_limit ? mul(Fixed{static_cast<std::int64_t>(top)}, s) : Fixed{fixed_invalid};
}

template <class S>
struct ForwardRow {
  const S *x, *weight, *bias;
  S *y, *mean, *rstd;
  std::int64_t hidden;
  Real<S> epsilon;

  /// Returns whether a finished value that no output shows left the range.
  template <class Team>
  SHARDPROOF_HD bool operator()(const Team& team, std::int64_t row) const {
    const auto n = hidden;
    const S* const in = x + row * n;
    const S total = fold_finished<S>(team, n, [=](std::int64_t i) { return in[i]; });
    const S m = round_to<S>(real(total) / static_cast<Real<S>>(n));
    const auto centred = [=](std::int64_t i) { return sub_in_range(in[i], m); };
    if constexpr (std::is_same_v<S, Fixed>) {
      const S* const w = weight;
      const auto top = fold_magnitude(team, n, centred);
      const auto top_weight = fold_magnitude(team, n, [=](std::int64_t i) { return w[i]; });
      const S squares =
          fma_sum_fits(top, top, n) ? sum_of_squares<ByFma>(team, centred) : sum_of_squares<Defined<S>>(team, centred);
      const S s = reciprocal_deviation(squares);
      const S top_xh = top_normalised(top, s);
      if (fma_fits(top, magnitude(s)) && fma_fits(magnitude(top_xh), top_weight)) {
        write<ByFma>(team, row, centred, m, s);
      } else {
        write<Defined<S>>(team, row, centred, m, s);
      }
      return !(in_range(total) && in_range(squares));
    } else {
      const S s = reciprocal_deviation(sum_of_squares<Defined<S>>(team, centred));
      write<Defined<S>>(team, row, centred, m, s);
      return false;
    }
  }

 private:
  template <class A, class Team, class F>
  SHARDPROOF_HD S sum_of_squares(const Team& team, F centred) const {
    return fold_products<A>(team, hidden, [=](std::int64_t i) {
      const S d = centred(i);
      return A::product(d, d);
    });
  }
  SHARDPROOF_HD S reciprocal_deviation(S squares) const {
    using C = Real<S>;
    const S variance = round_to<S>(real(squares) / static_cast<C>(hidden));
    return round_to<S>(C(1) / std::sqrt(real(variance) + epsilon));
  }
  template <class A, class Team, class F>
  SHARDPROOF_HD void write(const Team& team, std::int64_t row, F centred, S m, S s) const {
    S* const out = y + row * hidden;
    const S *const w = weight, *const b = bias;
    team.each(hidden, [=](std::int64_t i) {
      const S xh = A::finish(A::product(centred(i), s));
      out[i] = A::finish(A::product(xh, w[i]) + A::term(b[i]));
    });
    S *const means = mean, *const rstds = rstd;
    team.each(1, [=](std::int64_t) {
      means[row] = m;
      rstds[row] = s;
    });
  }
};

template <class S>
struct BackwardRow {
  const S *dy, *x, *mean, *rstd, *weight;
  S* dx;
  std::int64_t hidden;

  /// Returns whether a finished value that no output shows left the range.
  template <class Team>
  SHARDPROOF_HD bool operator()(const Team& team, std::int64_t row) const {
    const View view{dy + row * hidden, x + row * hidden, weight, mean[row], rstd[row]};
    if constexpr (std::is_same_v<S, Fixed>) {
      return by_magnitude(team, row, view);
    } else {
      write<Defined<S>>(team, row, view, means<Defined<S>>(team, view));
      return false;
    }
  }

 private:
  struct View {
    const S *dy, *x, *weight;
    S m, s;

    SHARDPROOF_HD S centred(std::int64_t i) const { return sub_in_range(x[i], m); }
    /// xh and g
    template <class A>
    SHARDPROOF_HD S normalised(std::int64_t i) const {
      return A::finish(A::product(centred(i), s));
    }
    template <class A>
    SHARDPROOF_HD S gradient(std::int64_t i) const {
      return A::finish(A::product(dy[i], weight[i]));
    }
  };
  struct Means {
    S m1, m2;
    bool overflow;  ///< of a sum
  };

  template <class A, class Team>
  SHARDPROOF_HD Means means(const Team& team, View view) const {
    const S g = fold_products<A>(team, hidden, [=](std::int64_t i) { return A::term(view.template gradient<A>(i)); });
    const S gx = fold_products<A>(team, hidden, [=](std::int64_t i) {
      return A::product(view.template gradient<A>(i), view.template normalised<A>(i));
    });
    const auto count = static_cast<Real<S>>(hidden);
    return {round_to<S>(real(g) / count), round_to<S>(real(gx) / count), !(in_range(g) && in_range(gx))};
  }

  /// fin(g - m1 - product(xh,m2))
  template <class A>
  static SHARDPROOF_HD S inner(S g, S xh, Means means) {
    return A::finish(A::term(g) - A::term(means.m1) - A::product(xh, means.m2));
  }

  template <class A, class Team>
  SHARDPROOF_HD void write(const Team& team, std::int64_t row, View view, Means means) const {
    S* const out = dx + row * hidden;
    team.each(hidden, [=](std::int64_t i) {
      const S d = inner<A>(view.template gradient<A>(i), view.template normalised<A>(i), means);
      out[i] = A::finish(A::product(view.s, d));
    });
  }

  template <class Team>
  SHARDPROOF_HD bool by_magnitude(const Team& team, std::int64_t row, View view) const {
    using Exact = Defined<Fixed>;
    const auto top = fold_magnitude(team, hidden, [=](std::int64_t i) { return view.centred(i); });
    const auto top_dy = fold_magnitude(team, hidden, [=](std::int64_t i) { return view.dy[i]; });
    const auto top_weight = fold_magnitude(team, hidden, [=](std::int64_t i) { return view.weight[i]; });
    const auto s = magnitude(view.s);
    const Fixed xh_limit = top_normalised(top, view.s);
    const bool factors_fit = fma_fits(top, s) && fma_fits(top_dy, top_weight);
    // Not attained, as the two maxima may lie apart: it bounds g, but does not show its overflow.
    const auto g_limit = factors_fit ? magnitude(mul(raw_of(top_dy), raw_of(top_weight))) : fixed_limit;
    const bool sums_fit = fma_sum_fits(g_limit, magnitude(xh_limit), hidden) &&
                          static_cast<double>(g_limit) * static_cast<double>(hidden) < 0x1p61;
    const Means found = sums_fit ? means<ByFma>(team, view) : means<Exact>(team, view);
    if (sums_fit && fma_fits(magnitude(xh_limit), magnitude(found.m2))) {
      const auto inner_limit = g_limit + magnitude(found.m1) + magnitude(mul(xh_limit, found.m2));
      if (fma_fits(inner_limit, s)) {
        write<ByFma>(team, row, view, found);
        return false;  // all that was computed is below what fits
      }
    }
    return write_checked(team, row, view, found) || found.overflow || !in_range(xh_limit);
  }

  static SHARDPROOF_HD Fixed raw_of(std::uint64_t magnitude) { return Fixed{static_cast<std::int64_t>(magnitude)}; }

  template <class Team>
  SHARDPROOF_HD bool write_checked(const Team& team, std::int64_t row, View view, Means means) const {
    using Exact = Defined<Fixed>;
    S* const out = dx + row * hidden;
    const auto write_one = [=](std::int64_t i) {
      const S g = view.template gradient<Exact>(i);
      const S d = inner<Exact>(g, view.template normalised<Exact>(i), means);
      out[i] = mul(view.s, d);
      return !(in_range(g) && in_range(d));
    };
    return team.fold(hidden, false, write_one, AnyOf{});
  }
};

}  // namespace shardproof::layer_norm
