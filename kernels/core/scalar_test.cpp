// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/scalar.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/philox.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t one = std::int64_t{1} << 40;
constexpr std::int64_t half = one / 2;

/// Raw values around every power of two, both signs, up to the ends of int64, and random ones of every length.
std::vector<std::int64_t> hostile_raws() {
  std::vector<std::int64_t> raws{0, fixed_invalid, fixed_invalid + 1, std::numeric_limits<std::int64_t>::max()};
  for (int bit = 0; bit < 63; ++bit) {
    for (const std::int64_t near : {-1, 0, 1}) {
      raws.push_back((std::int64_t{1} << bit) + near);
      raws.push_back(-(std::int64_t{1} << bit) + near);
    }
  }
  const RandomStream random(1, "hostile_raws");
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto bits = std::uint64_t{random.word(2 * i)} << 32 | random.word(2 * i + 1);
    raws.push_back(static_cast<std::int64_t>(bits) >> (i % 63));
  }
  return raws;
}

/// a*b/2^40 to nearest even by school arithmetic on magnitudes, with remainder compared to one half.
int128 product_by_division(std::int64_t a, std::int64_t b) {
  const auto magnitude = [](std::int64_t v) {
    return v < 0 ? uint128{0} - static_cast<uint128>(v) : static_cast<uint128>(v);
  };
  const uint128 p = magnitude(a) * magnitude(b);
  const auto divisor = uint128{1} << 40;
  uint128 quotient = p / divisor;
  const uint128 remainder = p % divisor;
  if (2 * remainder > divisor || (2 * remainder == divisor && quotient % 2 == 1)) ++quotient;
  return (a < 0) != (b < 0) ? -static_cast<int128>(quotient) : static_cast<int128>(quotient);
}

TEST(Scalar, ProductIsRoundedToNearestEven) {
  const auto raws = hostile_raws();
  for (const auto a : raws) {
    for (const auto b : raws)
      ASSERT_TRUE(product(Fixed{a}, Fixed{b}).raw == product_by_division(a, b)) << a << " * " << b;
  }
}

TEST(Scalar, ProductOnTies) {
  // b = 1/2: every odd raw is a tie.
  EXPECT_EQ(mul(Fixed{1}, Fixed{half}).raw, 0);
  EXPECT_EQ(mul(Fixed{3}, Fixed{half}).raw, 2);
  EXPECT_EQ(mul(Fixed{5}, Fixed{half}).raw, 2);
  EXPECT_EQ(mul(Fixed{-1}, Fixed{half}).raw, 0);
  EXPECT_EQ(mul(Fixed{-3}, Fixed{half}).raw, -2);
  EXPECT_EQ(mul(Fixed{-5}, Fixed{half}).raw, -2);
  EXPECT_EQ(mul(Fixed{7}, Fixed{-half}).raw, -4);
  // A quarter and three quarters are none.
  EXPECT_EQ(mul(Fixed{1}, Fixed{half / 2}).raw, 0);
  EXPECT_EQ(mul(Fixed{3}, Fixed{half / 2}).raw, 1);
  EXPECT_EQ(mul(Fixed{one}, Fixed{one}).raw, one);
}

TEST(Scalar, SumsAreFinishedOnceAndOnlyTotalsCount) {
  const Fixed top{fixed_limit - 1};
  EXPECT_TRUE(in_range(top));
  EXPECT_FALSE(in_range(Fixed{fixed_limit}));
  EXPECT_TRUE(in_range(Fixed{-fixed_limit + 1}));
  EXPECT_FALSE(in_range(Fixed{-fixed_limit}));
  EXPECT_FALSE(in_range(Fixed{fixed_invalid}));
  EXPECT_EQ(add(top, Fixed{1}).raw, fixed_invalid);
  EXPECT_EQ(sub(Fixed{-fixed_limit + 1}, Fixed{1}).raw, fixed_invalid);
  EXPECT_EQ(add(top, Fixed{0}).raw, fixed_limit - 1);

  // 2^20 times the top and back: far outside 64 bits on the way.
  FixedSum sum;
  for (int i = 0; i < 1 << 20; ++i) sum += term(top);
  EXPECT_EQ(finish<Fixed>(sum).raw, fixed_invalid);
  for (int i = 0; i < 1 << 20; ++i) sum = sum - term(top);
  EXPECT_EQ(finish<Fixed>(sum + term(Fixed{5})).raw, 5);
  // A total that is 5 modulo 2^64 is out of range all the same.
  EXPECT_EQ(finish<Fixed>({(static_cast<int128>(1) << 64) + 5}).raw, fixed_invalid);
  // 2^11 * 2^11 is the first product out of range.
  EXPECT_EQ(mul(Fixed{one << 11}, Fixed{one << 11}).raw, fixed_invalid);
  EXPECT_EQ(mul(Fixed{one << 11}, Fixed{(one << 11) - 1}).raw, fixed_limit - (1 << 11));
}

TEST(Scalar, RoundToIsHalfEvenAndRefusesTheRest) {
  const auto raw = [](double y) { return round_to<Fixed>(y).raw; };
  for (const double k : {0.0, 1.0, 2.0, 3.0, 1e6, 123456789.0}) {
    const auto whole = static_cast<std::int64_t>(k);
    const auto even = whole % 2 == 0 ? whole : whole + 1;
    EXPECT_EQ(raw((k + 0.5) * 0x1p-40), even) << k;
    EXPECT_EQ(raw(-(k + 0.5) * 0x1p-40), -even) << k;
    EXPECT_EQ(raw((k + 0.25) * 0x1p-40), whole) << k;
    EXPECT_EQ(raw((k + 0.75) * 0x1p-40), whole + 1) << k;
  }
  const double below = std::nextafter(0x1p22, 0.0);
  EXPECT_EQ(raw(below), fixed_limit - (1 << 9));  // 53 bits below 2^62: steps of 2^9
  EXPECT_EQ(raw(-below), -fixed_limit + (1 << 9));
  for (const double bad : {0x1p22, std::nextafter(0x1p22, 1e9), 1e300, HUGE_VAL, std::nan("")}) {
    EXPECT_EQ(raw(bad), fixed_invalid) << bad;
    EXPECT_EQ(raw(-bad), fixed_invalid) << -bad;
  }
  EXPECT_EQ(raw(-0.0), 0);
  EXPECT_EQ(raw(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(round_to<double>(0.1), 0.1);
  EXPECT_EQ(round_to<float>(0.1f), 0.1f);
}

TEST(Scalar, RealIsTheNearestDouble) {
  for (const auto a : hostile_raws()) {
    // long double holds every int64; its conversion to double is the one rounding.
    const auto nearest = static_cast<double>(static_cast<long double>(a) * 0x1p-40L);
    ASSERT_EQ(real(Fixed{a}), nearest) << a;
    const auto whole = std::int64_t{1} << 53;
    if (a < -whole || a > whole) continue;
    ASSERT_EQ(round_to<Fixed>(real(Fixed{a})).raw, a);
  }
}

TEST(Scalar, FloatsAreThemselves) {
  EXPECT_EQ(mul(0.1, 0.3), 0.1 * 0.3);
  EXPECT_EQ(add(0.1f, 0.3f), 0.1f + 0.3f);
  EXPECT_EQ(sub(0.1, 0.3), 0.1 - 0.3);
  EXPECT_EQ(finish<double>(1e300), 1e300);
  EXPECT_TRUE(in_range(1e300));
}

}  // namespace
}  // namespace shardproof
