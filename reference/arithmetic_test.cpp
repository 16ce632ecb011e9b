// SPDX-License-Identifier: Apache-2.0
#include "reference/arithmetic.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace shardproof::reference {
namespace {

// The largest value in range is 2^22 - 2^-40, the smallest its negative.
TEST(Arithmetic, RaisesOverflowExactlyOutsideTheRange) {
  constexpr Fixed most{fixed_limit - 1}, least{1 - fixed_limit}, grain{1};
  Arithmetic<Fixed> inside;
  EXPECT_EQ(inside.finish(FixedSum{fixed_limit - 1}), most);
  EXPECT_EQ(inside.add(most, Fixed{-1}), Fixed{fixed_limit - 2});
  EXPECT_EQ(inside.sub(least, Fixed{0}), least);
  EXPECT_EQ(inside.round(0x1.fffffffffffffp21).raw, (std::int64_t{1} << 62) - (std::int64_t{1} << 9));
  EXPECT_EQ(inside.mul(Fixed{std::int64_t{1} << 50}, Fixed{std::int64_t{1} << 51}).raw, std::int64_t{1} << 61);
  EXPECT_FALSE(inside.overflow());

  const auto overflows = [](auto operation) {
    Arithmetic<Fixed> arithmetic;
    return operation(arithmetic).raw == fixed_invalid && arithmetic.overflow();
  };
  EXPECT_TRUE(overflows([&](auto& a) { return a.add(most, grain); }));
  EXPECT_TRUE(overflows([&](auto& a) { return a.sub(least, grain); }));
  EXPECT_TRUE(overflows([&](auto& a) { return a.finish(FixedSum{static_cast<int128>(1) << 100}); }));
  EXPECT_TRUE(overflows([](auto& a) { return a.round(0x1p22); }));
  EXPECT_TRUE(overflows([](auto& a) { return a.round(std::numeric_limits<double>::quiet_NaN()); }));
  EXPECT_TRUE(overflows([](auto& a) { return a.mul(Fixed{std::int64_t{1} << 51}, Fixed{std::int64_t{1} << 51}); }));
}

TEST(Arithmetic, TheFlagStays) {
  Arithmetic<Fixed> arithmetic;
  arithmetic.checked(Fixed{fixed_invalid});
  arithmetic.add(Fixed{1}, Fixed{1});
  EXPECT_TRUE(arithmetic.overflow());
}

}  // namespace
}  // namespace shardproof::reference
