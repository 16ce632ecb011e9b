// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_compare.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

TEST(Compare, CountsThatAreEqualAsDoublesDiffer) {
  constexpr std::int64_t large = std::int64_t{1} << 53;
  const Values a = std::vector<std::int64_t>{1, large}, b = std::vector<std::int64_t>{1, large + 1};
  const Comparison result = compare_bits(a, b);
  EXPECT_EQ(result.outside, 1);
  EXPECT_EQ(result.index, 1);
  EXPECT_EQ(result.error, 1);
  EXPECT_TRUE(std::isinf(result.worst));
  EXPECT_EQ(compare_bits(a, a).outside, 0);
}

}  // namespace
}  // namespace shardproof::harness
