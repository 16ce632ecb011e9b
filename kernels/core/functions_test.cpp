// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/philox.hpp"
#include "kernels/core/sha256.hpp"

namespace shardproof {
namespace {

/// Points that cover [low, high]: evenly spaced with a random shift each, and the ends.
template <class C>
std::vector<C> points(double low, double high, int n) {
  const RandomStream random(7, "points");
  std::vector<C> x{C(low), C(high)};
  for (int i = 0; i < n; ++i) {
    const auto at = low + (high - low) * ((i + random.uniform(static_cast<std::uint64_t>(i))) / n);
    x.push_back(std::clamp(static_cast<C>(at), C(low), C(high)));
  }
  return x;
}

/// The greatest |f(x) - reference(x)| in units in the last place of the reference.
template <class C, class F, class G>
double worst_ulp(const std::vector<C>& xs, F f, G reference) {
  double worst = 0;
  for (const auto x : xs) {
    const long double r = reference(static_cast<long double>(x));
    const C magnitude = std::fabs(static_cast<C>(r));
    const C ulp = std::nextafter(magnitude, std::numeric_limits<C>::infinity()) - magnitude;
    worst = std::max(worst, static_cast<double>(std::fabs(static_cast<long double>(f(x)) - r) / ulp));
  }
  return worst;
}

template <class C, class F, class G>
double worst_absolute(const std::vector<C>& xs, F f, G reference) {
  double worst = 0;
  for (const auto x : xs) {
    const auto error = std::fabs(static_cast<long double>(f(x)) - reference(static_cast<long double>(x)));
    worst = std::max(worst, static_cast<double>(error));
  }
  return worst;
}

long double gelu_reference(long double x) {
  const long double g = std::sqrt(2 / std::numbers::pi_v<long double>);
  return x / 2 * (1 + std::tanh(g * (x + 0.044715L * x * x * x)));
}
long double gelu_derivative_reference(long double x) {
  const long double g = std::sqrt(2 / std::numbers::pi_v<long double>);
  const long double t = std::tanh(g * (x + 0.044715L * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * (g * (1 + 0.134145L * x * x));
}

// Bounds of exp. Double: the reduction's error is below 2^-53 * ln2/2 (n times the first part is exact, the second's
// product has a relative error of 2^-53 of |n| * 2^-33), the two last roundings of the polynomial are 1/2 ulp of 1 and
// 1/2 ulp of r each, all relative to p >= 0.7: below 2 ulp. The cut after r^13 is 2^-58. Float likewise.
TEST(Functions, Exp) {
  const auto exp_l = [](long double x) { return std::exp(x); };
  const auto exp_c = [](auto x) { return exp_of(x); };
  EXPECT_LT(worst_ulp(points<double>(-690, 690, 300000), exp_c, exp_l), 2);
  EXPECT_LT(worst_ulp(points<double>(-1, 1, 100000), exp_c, exp_l), 2);
  EXPECT_LT(worst_ulp(points<float>(-87, 88, 300000), exp_c, exp_l), 2);
  EXPECT_LT(worst_ulp(points<float>(-1, 1, 100000), exp_c, exp_l), 2);
  EXPECT_EQ(exp_of(0.0), 1.0);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
}

TEST(Functions, ExpOutsideItsRange) {
  EXPECT_EQ(exp_of(-1e300), exp_of(-690.0));
  EXPECT_EQ(exp_of(-HUGE_VAL), exp_of(-690.0));
  EXPECT_EQ(exp_of(HUGE_VAL), exp_of(690.0));
  EXPECT_EQ(exp_of(-HUGE_VALF), exp_of(-87.0f));
  EXPECT_EQ(exp_of(1e30f), exp_of(88.0f));
  for (const auto sign : {1.0, -1.0}) {
    EXPECT_TRUE(std::isnan(exp_of(std::copysign(std::nan(""), sign))));
    EXPECT_TRUE(std::isnan(exp_of(std::copysign(std::nanf(""), static_cast<float>(sign)))));
  }
}

// log: with e = 0 (x in [1/sqrt 2, sqrt 2]) only 2f*p is left: m + 1, the quotient and the product round once each, p
// by little more than half an ulp of 1; together below 2u of the result, hence 3 ulp with room. Else e*ln2 dominates.
TEST(Functions, Log) {
  const auto log_l = [](long double x) { return std::log(x); };
  const auto log_c = [](auto x) { return log_of(x); };
  EXPECT_LT(worst_ulp(points<double>(0.5, 2, 300000), log_c, log_l), 3);
  EXPECT_LT(worst_ulp(points<double>(2, 4194304, 300000), log_c, log_l), 2);
  EXPECT_LT(worst_ulp(points<float>(0x1p-20, 4194304, 100000), log_c, log_l), 0.501);  // through double: one rounding
  std::vector<double> extremes{std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
  for (int k = -1022; k < 1024; ++k) extremes.push_back(std::ldexp(1.3, k));
  EXPECT_LT(worst_ulp(extremes, log_c, log_l), 2);
  EXPECT_EQ(log_of(1.0), 0.0);
}

// tanh: |dt/de| = 2/(1+e)^2 < 0.9 where e >= 1/2, and e errs by 2 ulp = 2u there; 1 + e and the quotient round by at
// most u and u/2; 1 - e is exact. Smaller e err less and 1 - e by u/2. In all below 3u, u = 2^-53 or 2^-24.
TEST(Functions, TanhAbsolutely) {
  const auto tanh_l = [](long double x) { return std::tanh(x); };
  const auto tanh_c = [](auto x) { return tanh_of(x); };
  EXPECT_LT(worst_absolute(points<double>(-20, 20, 300000), tanh_c, tanh_l), 3 * 0x1p-53);
  EXPECT_LT(worst_absolute(points<float>(-20, 20, 300000), tanh_c, tanh_l), 3 * 0x1p-24);
  EXPECT_TRUE(std::signbit(tanh_of(-0.0)));
  EXPECT_EQ(tanh_of(HUGE_VAL), 1.0);
  EXPECT_EQ(tanh_of(-HUGE_VALF), -1.0f);
  EXPECT_TRUE(std::isnan(tanh_of(std::nan(""))));
}

// gelu: |x|/2 times the error of 1 + t (3u, u of the sum, and u's own four roundings times |u| (1 - t^2) < 0.45), and
// two roundings of at most |x|: below 6u |x|. The derivative multiplies the error of 1 - t*t, at most 2 * 3u, by
// (|x|/2) u'(x), which is 24 where t becomes 1 in double (|x| = 7.3; in float earlier), and nothing beyond: below 150u.
TEST(Functions, Gelu) {
  const auto gelu_c = [](auto x) { return gelu_of(x); };
  const auto derivative_c = [](auto x) { return gelu_derivative_of(x); };
  for (const double top : {1.0, 4.0, 30.0}) {
    EXPECT_LT(worst_absolute(points<double>(-top, top, 200000), gelu_c, gelu_reference), 6 * top * 0x1p-53);
    EXPECT_LT(worst_absolute(points<float>(-top, top, 200000), gelu_c, gelu_reference), 6 * top * 0x1p-24);
    EXPECT_LT(worst_absolute(points<double>(-top, top, 200000), derivative_c, gelu_derivative_reference),
              150 * 0x1p-53);
    EXPECT_LT(worst_absolute(points<float>(-top, top, 200000), derivative_c, gelu_derivative_reference), 150 * 0x1p-24);
  }
  EXPECT_EQ(gelu_of(0.0), 0.0);
  EXPECT_EQ(gelu_of(1e6), 1e6);
  EXPECT_EQ(gelu_of(-1e6), 0.0);
  EXPECT_EQ(gelu_derivative_of(1e6), 1.0);
  EXPECT_EQ(gelu_derivative_of(-1e6), 0.0);
}

TEST(Functions, CosPi) {
  const auto reference = [](long double x) { return std::cos(std::numbers::pi_v<long double> * x); };
  EXPECT_LT(worst_absolute(points<double>(0, 1, 300000), cos_pi_of, reference), 0x1p-50);
  EXPECT_EQ(cos_pi_of(0.0), 1.0);
  EXPECT_EQ(cos_pi_of(1.0), -1.0);
}

/// Ten million results of the functions and R: a compiler flag that contracts, reassociates or uses another library's
/// functions changes one result in 10^4 to 10^6, which a small training run does not show.
class ResultsDigest {
 public:
  template <class F>
  void add(double low, double high, F f) {
    constexpr std::size_t block = 10000;
    std::vector<std::uint32_t> words(block);
    std::vector<std::int64_t> raw(block);
    for (int k = 0; k < 125; ++k) {
      random_.words(at_, words);
      at_ += block;
      const double scale = (high - low) * 0x1p-32;
      for (std::size_t i = 0; i < block; ++i) raw[i] = round_to<Fixed>(f(low + scale * words[i])).raw;
      hash_.add(std::as_bytes(std::span(raw)));
    }
  }
  std::string finish() { return hash_.finish_hex(); }

 private:
  RandomStream random_{20240229, "ten million"};
  std::uint64_t at_ = 0;
  Sha256 hash_;
};

TEST(Functions, TenMillionResultsHaveOneDigest) {
  ResultsDigest digest;
  digest.add(-30, 15, [](double x) { return exp_of(x); });
  digest.add(0x1p-40, 4000000, [](double x) { return log_of(x); });
  digest.add(-6, 6, [](double x) { return tanh_of(x); });
  digest.add(-12, 12, [](double x) { return gelu_of(x); });
  digest.add(-12, 12, [](double x) { return gelu_derivative_of(x); });
  digest.add(0, 1, [](double x) { return cos_pi_of(x); });
  digest.add(0x1p-20, 4000, [](double x) { return 1.0 / std::sqrt(x + 1e-5); });
  // Adam's update: the longest expression that is rounded once.
  digest.add(-1, 1, [](double g) {
    const double m = 0.9 * (g * 0.3) + 0.1 * g, v = 0.95 * (g * g) + (0.05 * g) * g;
    return (1e-3 * (m / 0.19)) / (std::sqrt(v / 0.0975) + 1e-8);
  });
  EXPECT_EQ(digest.finish(), "aed6477f841a3512c89f0963c3ae4ed8a89587cf70d4c08e76cc6c10c4df0436");
}

}  // namespace
}  // namespace shardproof
