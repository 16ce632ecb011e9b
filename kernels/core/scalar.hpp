// SPDX-License-Identifier: Apache-2.0
// The scalars of the three tracks and their rounding rules (reference/ARITHMETIC.md, sections 1 and 2).
//
//   S        what a tensor holds           Fixed      double   float
//   Real<S>  what functions compute in     double     double   float
//   Sum<S>   an unfinished sum             FixedSum   double   float
//
// Compiles as host and as device code.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define SHARDPROOF_HD __host__ __device__
#else
#define SHARDPROOF_HD
#endif

namespace shardproof {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

/// Fixed point Q23.40: the value raw / 2^40.
struct Fixed {
  std::int64_t raw;
  friend SHARDPROOF_HD constexpr bool operator==(Fixed a, Fixed b) { return a.raw == b.raw; }
  friend SHARDPROOF_HD constexpr bool operator<(Fixed a, Fixed b) { return a.raw < b.raw; }
  friend SHARDPROOF_HD constexpr bool operator>(Fixed a, Fixed b) { return a.raw > b.raw; }
};

/// An unfinished sum of Fixed values and products: exact, order-free.
struct FixedSum {
  int128 raw = 0;
  friend SHARDPROOF_HD constexpr FixedSum operator+(FixedSum a, FixedSum b) { return {a.raw + b.raw}; }
  friend SHARDPROOF_HD constexpr FixedSum operator-(FixedSum a, FixedSum b) { return {a.raw - b.raw}; }
  SHARDPROOF_HD constexpr FixedSum& operator+=(FixedSum b) { return raw += b.raw, *this; }
};

template <class S>
struct ScalarTraits;
template <>
struct ScalarTraits<Fixed> {
  using Real = double;
  using Sum = FixedSum;
};
template <>
struct ScalarTraits<double> {
  using Real = double;
  using Sum = double;
};
template <>
struct ScalarTraits<float> {
  using Real = float;
  using Sum = float;
};
template <class S>
using Real = typename ScalarTraits<S>::Real;
template <class S>
using Sum = typename ScalarTraits<S>::Sum;

/// 2^40, the scale of Fixed, and the first raw magnitude that is out of range (value 2^22).
inline constexpr double fixed_one = 0x1p40;
inline constexpr std::int64_t fixed_limit = std::int64_t{1} << 62;
/// What an out-of-range result is written as; also the poison of fresh and freed memory.
inline constexpr std::int64_t fixed_invalid = std::numeric_limits<std::int64_t>::min();

/// |value| < 2^22. A finished Fixed outside is an overflow (or poison).
SHARDPROOF_HD constexpr bool in_range(Fixed a) { return a.raw > -fixed_limit && a.raw < fixed_limit; }
SHARDPROOF_HD inline bool in_range(double) { return true; }
SHARDPROOF_HD inline bool in_range(float) { return true; }

/// D(x): the scalar as a real number of the type that functions compute in.
SHARDPROOF_HD inline double real(Fixed a) { return static_cast<double>(a.raw) * 0x1p-40; }
SHARDPROOF_HD inline double real(double a) { return a; }
SHARDPROOF_HD inline float real(float a) { return a; }

/// R(y): one rounding, to nearest even. Fixed: fixed_invalid for a NaN or |y| >= 2^22.
template <class S>
SHARDPROOF_HD inline S round_to(Real<S> y) {
  if constexpr (std::is_same_v<S, Fixed>) {
    // The comparison comes before the conversion, which differs between processors when out of range.
    const bool ok = std::fabs(y) < 0x1p22;
    const double nearest = std::rint(ok ? y * fixed_one : 0.0);  // apart: as one expression it is lrint, a slow scalar
    return Fixed{ok ? static_cast<std::int64_t>(nearest) : fixed_invalid};
  } else {
    return y;
  }
}

/// A value, and a product of two values rounded once (ties to even), as terms of an unfinished sum.
SHARDPROOF_HD constexpr FixedSum term(Fixed a) { return {a.raw}; }
SHARDPROOF_HD inline double term(double a) { return a; }
SHARDPROOF_HD inline float term(float a) { return a; }
SHARDPROOF_HD constexpr FixedSum product(Fixed a, Fixed b) {
  const int128 p = static_cast<int128>(a.raw) * b.raw;
  const int128 half_even = ((static_cast<int128>(1) << 39) - 1) + ((p >> 40) & 1);
  return {(p + half_even) >> 40};
}
SHARDPROOF_HD inline double product(double a, double b) { return a * b; }
SHARDPROOF_HD inline float product(float a, float b) { return a * b; }

/// fin(sum): the finished scalar; fixed_invalid where the true total is out of range.
template <class S>
SHARDPROOF_HD inline S finish(Sum<S> sum) {
  if constexpr (std::is_same_v<S, Fixed>) {
    const auto low = static_cast<std::int64_t>(sum.raw);
    return Fixed{low == sum.raw && in_range(Fixed{low}) ? low : fixed_invalid};
  } else {
    return sum;
  }
}

template <class S>
SHARDPROOF_HD inline S mul(S a, S b) {
  return finish<S>(product(a, b));
}
template <class S>
SHARDPROOF_HD inline S add(S a, S b) {
  return finish<S>(term(a) + term(b));
}
template <class S>
SHARDPROOF_HD inline S sub(S a, S b) {
  return finish<S>(term(a) - term(b));
}

}  // namespace shardproof
