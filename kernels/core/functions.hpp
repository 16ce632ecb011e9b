// SPDX-License-Identifier: Apache-2.0
// exp, log, tanh, GELU and cos as fixed texts (reference/ARITHMETIC.md, section 3): only + - * / and exact operations,
// so that every compiler and processor gives the same bits (with -ffp-contract=off, --fmad=false on a device).
// Branch-free, so that loops over them vectorise. Errors against long double are bounded in functions_test.cpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/core/scalar.hpp"

namespace shardproof {

namespace detail {
#ifdef __CUDACC__
template <class To, class From>
SHARDPROOF_HD inline To bit_cast(const From& from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
#else
using std::bit_cast;
#endif
}  // namespace detail

/// e^x. x is clamped to [-690, 690]: below, the result is e^-690 rather than 0. Error below 2 ulp.
SHARDPROOF_HD inline double exp_of(double x) {
  constexpr double magic = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  x = x < -690.0 ? -690.0 : x;
  x = x > 690.0 ? 690.0 : x;
  const double t = x * 1.4426950408889634074 + magic;
  const double n = t - magic;
  double r = x - n * 6.93147180369123816490e-01;  // ln 2 in two parts: n times the first is exact
  r = r - n * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::int64_t exponent = detail::bit_cast<std::int64_t>(t) - detail::bit_cast<std::int64_t>(magic);
  // Through unsigned: a NaN's bits may overflow here, and then p is the NaN that the product keeps.
  const auto bits = (static_cast<std::uint64_t>(exponent) + 1023u) << 52;
  return p * detail::bit_cast<double>(bits);
}

/// e^x in float; x is clamped to [-87, 88].
SHARDPROOF_HD inline float exp_of(float x) {
  constexpr float magic = 0x1.8p23f;
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float t = x * 1.44269504f + magic;
  const float n = t - magic;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::int32_t exponent = detail::bit_cast<std::int32_t>(t) - detail::bit_cast<std::int32_t>(magic);
  const auto bits = (static_cast<std::uint32_t>(exponent) + 127u) << 23;
  return p * detail::bit_cast<float>(bits);
}

/// ln x of a normal x > 0. Error below 2 ulp, between 1/sqrt 2 and sqrt 2 below 3.
SHARDPROOF_HD inline double log_of(double x) {
  auto bits = detail::bit_cast<std::uint64_t>(x);
  auto e = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = detail::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  const bool high = m > 1.41421356237309504880;
  m = high ? m * 0.5 : m;
  e = high ? e + 1 : e;
  const double f = (m - 1.0) / (m + 1.0);
  const double s = f * f;
  double p = 1.0 / 21.0;
  p = p * s + 1.0 / 19.0;
  p = p * s + 1.0 / 17.0;
  p = p * s + 1.0 / 15.0;
  p = p * s + 1.0 / 13.0;
  p = p * s + 1.0 / 11.0;
  p = p * s + 1.0 / 9.0;
  p = p * s + 1.0 / 7.0;
  p = p * s + 1.0 / 5.0;
  p = p * s + 1.0 / 3.0;
  p = p * s + 1.0;
  const auto n = static_cast<double>(e);
  return ((2.0 * f) * p + n * 1.90821492927058770002e-10) + n * 6.93147180369123816490e-01;
}
SHARDPROOF_HD inline float log_of(float x) { return static_cast<float>(log_of(static_cast<double>(x))); }

/// tanh x, to an absolute error of a few roundings of 1 (its users add 1 to it).
template <class C>
SHARDPROOF_HD inline C tanh_of(C x) {
  const C e = exp_of(C(-2) * std::fabs(x));
  const C t = (C(1) - e) / (C(1) + e);
  return std::copysign(t, x);
}

/// GELU, tanh form, and its derivative (Hendrycks and Gimpel 2016).
template <class C>
SHARDPROOF_HD inline C gelu_of(C x) {
  const C u = C(0.79788456080286535588) * (x + ((C(0.044715) * x) * x) * x);
  return (C(0.5) * x) * (C(1) + tanh_of(u));
}
template <class C>
SHARDPROOF_HD inline C gelu_derivative_of(C x) {
  const C u = C(0.79788456080286535588) * (x + ((C(0.044715) * x) * x) * x);
  const C t = tanh_of(u);
  return C(0.5) * (C(1) + t) +
         ((C(0.5) * x) * (C(1) - t * t)) * (C(0.79788456080286535588) * (C(1) + (C(0.134145) * x) * x));
}

/// cos(pi x) for x in [0, 1]: odd about 1/2, Taylor's series of degree 22 on [0, pi/2]. Absolute error below 2^-50.
inline double cos_pi_of(double x) {
  const bool upper = x > 0.5;
  const double a = 3.14159265358979323846 * (upper ? 1.0 - x : x);
  const double s = a * a;
  double p = -1.0 / 1124000727777607680000.0;
  p = p * s + 1.0 / 2432902008176640000.0;
  p = p * s - 1.0 / 6402373705728000.0;
  p = p * s + 1.0 / 20922789888000.0;
  p = p * s - 1.0 / 87178291200.0;
  p = p * s + 1.0 / 479001600.0;
  p = p * s - 1.0 / 3628800.0;
  p = p * s + 1.0 / 40320.0;
  p = p * s - 1.0 / 720.0;
  p = p * s + 1.0 / 24.0;
  p = p * s - 0.5;
  p = p * s + 1.0;
  return upper ? -p : p;
}

}  // namespace shardproof
