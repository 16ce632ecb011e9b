// SPDX-License-Identifier: Apache-2.0
// Fixed in rows, in 64 bits: magnitudes, sums that cannot wrap, and products by one FMA. All of it vectorises, which
// the 128-bit definitions of scalar.hpp do not; each function says when it equals them. For double and float they are
// the same.
#pragma once

#include <limits>

#include "kernels/core/functions.hpp"
#include "kernels/core/scalar.hpp"
#include "kernels/core/team.hpp"

namespace shardproof {

/// Lanes of a row kernel's team: a part of its definition in f32 and f64, where the order of a sum is visible.
template <class S>
inline constexpr int row_lanes = sizeof(S) == 4 ? 64 : 32;

/// |raw|, of fixed_invalid too.
SHARDPROOF_HD constexpr std::uint64_t magnitude(Fixed a) {
  const auto bits = static_cast<std::uint64_t>(a.raw);
  return a.raw < 0 ? 0 - bits : bits;
}

/// raw if it is in range, else invalid.
SHARDPROOF_HD constexpr Fixed checked(std::int64_t raw) { return Fixed{in_range(Fixed{raw}) ? raw : fixed_invalid}; }

/// fin(a + b) and fin(a - b). Fixed: two numbers in range cannot wrap; of one number that is invalid the result is so
/// too; of two it is unspecified.
template <class S>
SHARDPROOF_HD constexpr S add_in_range(S a, S b) {
  if constexpr (std::is_same_v<S, Fixed>) {
    return checked(static_cast<std::int64_t>(static_cast<std::uint64_t>(a.raw) + static_cast<std::uint64_t>(b.raw)));
  } else {
    return a + b;
  }
}
template <class S>
SHARDPROOF_HD constexpr S sub_in_range(S a, S b) {
  if constexpr (std::is_same_v<S, Fixed>) {
    return checked(static_cast<std::int64_t>(static_cast<std::uint64_t>(a.raw) - static_cast<std::uint64_t>(b.raw)));
  } else {
    return a - b;
  }
}

#if defined(__FMA__) || defined(__aarch64__) || defined(__CUDA_ARCH__)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

/// x / c for c in (0, 1] by r, the reciprocal of c, and one correction by the remainder (Markstein, IBM J. Res. Dev.
/// 34, 1990): the same float as x / c wherever it was tried (optimizers_test.cpp), infinities and NaN included, but for
/// |x| < 2^-100, whose remainder is subnormal (a unit off), the sign of zero, and a quotient that is the largest float
/// (it may be infinite). Divisions are that much slower.
SHARDPROOF_HD inline float divide_by(float x, float c, float r) {
  if constexpr (!has_fma) return x / c;
  const float q = x * r;
  const float corrected = std::fma(std::fma(-q, c, x), r, q);
  return std::fabs(q) <= std::numeric_limits<float>::max() ? corrected : q;  // of an infinity the remainder is NaN
}

/// Whether fma_product() is product() for all factors up to these raw magnitudes, and fast here: both are exact as
/// doubles, and the product is below 2^51, so that 1.5 * 2^52 plus it has a unit of one. Comparing the rounded double
/// is safe: a product of 2^91 or more never rounds to less.
SHARDPROOF_HD inline bool fma_fits(std::uint64_t a, std::uint64_t b) {
  constexpr auto exact = std::uint64_t{1} << 53;
  return has_fma && a < exact && b < exact && static_cast<double>(a) * static_cast<double>(b) < 0x1p91;
}
/// The same, and n products sum to less than 2^62.
SHARDPROOF_HD inline bool fma_sum_fits(std::uint64_t a, std::uint64_t b, std::int64_t n) {
  const double largest = static_cast<double>(a) * static_cast<double>(b) * 0x1p-40 + 1.0;
  return fma_fits(a, b) && largest * static_cast<double>(n) < 0x1p61;
}

/// product(a, b).raw by one fused multiply-add, under fma_fits: the FMA's one rounding is the product's.
SHARDPROOF_HD inline std::int64_t fma_product(Fixed a, Fixed b) {
  constexpr double magic = 0x1.8p52;
  const double sum = std::fma(static_cast<double>(a.raw), static_cast<double>(b.raw) * 0x1p-40, magic);
  return detail::bit_cast<std::int64_t>(sum) - detail::bit_cast<std::int64_t>(magic);
}

/// How a row multiplies: by the definition, in any track ...
template <class S>
struct Defined {
  using Scalar = S;
  using Unfinished = Sum<S>;
  static SHARDPROOF_HD Unfinished term(S a) { return shardproof::term(a); }
  static SHARDPROOF_HD Unfinished product(S a, S b) { return shardproof::product(a, b); }
  static SHARDPROOF_HD S finish(Unfinished sum) { return shardproof::finish<S>(sum); }
};
/// ... or by FMA and 64-bit sums, where magnitudes have shown that this is the same.
struct ByFma {
  using Scalar = Fixed;
  using Unfinished = std::int64_t;
  static SHARDPROOF_HD std::int64_t term(Fixed a) { return a.raw; }
  static SHARDPROOF_HD std::int64_t product(Fixed a, Fixed b) { return fma_product(a, b); }
  static SHARDPROOF_HD Fixed finish(std::int64_t sum) { return checked(sum); }
};

/// max |value(i)|, 0 of none.
template <class Team, class F>
SHARDPROOF_HD std::uint64_t fold_magnitude(const Team& team, std::int64_t n, F value) {
  return team.fold(
      n, std::uint64_t{0}, [=](std::int64_t i) { return magnitude(value(i)); }, Greatest{});
}

/// fin(sum of value(i)). Fixed: a true total for n < 2^31, of high and low halves apart.
template <class S, class Team, class F>
SHARDPROOF_HD S fold_finished(const Team& team, std::int64_t n, F value) {
  if constexpr (std::is_same_v<S, Fixed>) {
    const auto high = team.fold(
        n, std::int64_t{0}, [=](std::int64_t i) { return value(i).raw >> 32; }, Plus{});
    const auto low = team.fold(
        n, std::int64_t{0}, [=](std::int64_t i) { return value(i).raw & std::int64_t{0xffffffff}; }, Plus{});
    return finish<S>(FixedSum{(static_cast<int128>(high) * (std::int64_t{1} << 32)) + low});
  } else {
    return team.fold(n, S{0}, value, Plus{});
  }
}

/// fin(sum of unfinished terms) under the row's way of multiplying.
template <class Arithmetic, class Team, class F>
SHARDPROOF_HD typename Arithmetic::Scalar fold_products(const Team& team, std::int64_t n, F term) {
  return Arithmetic::finish(team.fold(n, typename Arithmetic::Unfinished{}, term, Plus{}));
}

}  // namespace shardproof
