// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/fixed_row.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t one = std::int64_t{1} << 40;

TEST(FixedRow, MagnitudeOfEveryNumber) {
  EXPECT_EQ(magnitude(Fixed{-5}), 5u);
  EXPECT_EQ(magnitude(Fixed{fixed_invalid}), std::uint64_t{1} << 63);
}

TEST(FixedRow, SumsOfTwoAreTheFinishedOnes) {
  const std::int64_t top = fixed_limit - 1;
  for (const std::int64_t a : {std::int64_t{0}, std::int64_t{1}, top, top / 2, top / 2 + 1}) {
    for (const std::int64_t b : {std::int64_t{0}, std::int64_t{1}, top, top / 2, top / 2 + 1}) {
      for (const std::int64_t sign : {-1, 1}) {
        const Fixed x{a}, y{sign * b};
        EXPECT_EQ(add_in_range(x, y), add(x, y)) << a << " " << sign * b;
        EXPECT_EQ(sub_in_range(x, y), sub(x, y)) << a << " " << sign * b;
        EXPECT_EQ(sub_in_range(y, x), sub(y, x)) << a << " " << sign * b;
      }
    }
  }
  // One invalid number makes an invalid result.
  for (const std::int64_t b : {-top, std::int64_t{0}, top}) {
    EXPECT_FALSE(in_range(add_in_range(Fixed{fixed_invalid}, Fixed{b})));
    EXPECT_FALSE(in_range(sub_in_range(Fixed{b}, Fixed{fixed_invalid})));
  }
}

TEST(FixedRow, FmaFitsBelow) {
  if (!has_fma) {
    EXPECT_FALSE(fma_fits(0, 0));
    return;
  }
  const auto value = [](double v) { return static_cast<std::uint64_t>(v * fixed_one); };
  EXPECT_TRUE(fma_fits(0, 0));
  EXPECT_TRUE(fma_fits(value(8192) - 1, value(0.2)));
  EXPECT_FALSE(fma_fits(value(8192), 1));
  EXPECT_FALSE(fma_fits(1, value(8192)));
  EXPECT_TRUE(fma_fits(value(32), value(64) - 1));
  EXPECT_FALSE(fma_fits(value(32), value(64)));
  EXPECT_TRUE(fma_sum_fits(value(1), value(1), 1 << 20));
  EXPECT_FALSE(fma_sum_fits(value(1), value(1), 1 << 21));
  EXPECT_FALSE(fma_fits(std::uint64_t{1} << 63, 0));
}

TEST(FixedRow, FmaProductIsTheProductWhereItFits) {
  std::vector<Fixed> factors;
  // Ends of the range, halves (ties with every odd number), and numbers of every size.
  for (const std::int64_t raw : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, one / 2, one, one / 2 + 1,
                                 3 * one / 2, 32 * one, 64 * one - 1, 2048 * one - 1, 8192 * one - 1}) {
    factors.push_back(Fixed{raw});
    factors.push_back(Fixed{-raw});
  }
  for (const double v : testing::scattered(1, "factor", 2000, 24)) factors.push_back(round_to<Fixed>(v * 0x1p-12));
  std::int64_t fitting = 0, ties = 0;
  for (const Fixed a : factors) {
    for (const Fixed b : factors) {
      const bool below = magnitude(a) < std::uint64_t{1} << 53 && magnitude(b) < std::uint64_t{1} << 53;
      if (!below || static_cast<double>(magnitude(a)) * static_cast<double>(magnitude(b)) >= 0x1p91) continue;
      ++fitting;
      ties += (static_cast<int128>(a.raw) * b.raw & (one - 1)) == one / 2;
      ASSERT_EQ(fma_product(a, b), product(a, b).raw) << a.raw << " * " << b.raw;
    }
  }
  EXPECT_GT(fitting, 1000000);
  EXPECT_GT(ties, 500);
}

TEST(FixedRow, AFoldedSumIsTheTrueTotal) {
  const HostTeam<32> team;
  const auto all = [](std::int64_t raw) { return [raw](std::int64_t) { return Fixed{raw}; }; };
  const std::int64_t top = fixed_limit - 1;
  EXPECT_EQ(fold_finished<Fixed>(team, 0, all(7)).raw, 0);
  EXPECT_EQ(fold_finished<Fixed>(team, 1, all(-top)).raw, -top);
  EXPECT_EQ(fold_finished<Fixed>(team, 100003, all(-1)).raw, -100003);
  EXPECT_EQ(fold_finished<Fixed>(team, 2, all(top)).raw, fixed_invalid);
  EXPECT_EQ(fold_finished<Fixed>(team, 4, all(fixed_limit)).raw, fixed_invalid);  // 2^64
  const auto returning = [=](std::int64_t i) { return Fixed{i < 50 ? top : i < 100 ? -top : std::int64_t{3}}; };
  EXPECT_EQ(fold_finished<Fixed>(team, 101, returning).raw, 3);
  EXPECT_EQ(fold_magnitude(team, 101, returning), static_cast<std::uint64_t>(top));
}

}  // namespace
}  // namespace shardproof
