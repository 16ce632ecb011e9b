// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/strategy.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_strategy(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Strategy, DefaultsPrintAsOneDevice) {
  EXPECT_EQ(print(Strategy{}), "dp1");
  EXPECT_EQ(parse_strategy("dp1"), Strategy{});
  EXPECT_EQ(parse_strategy("microbatches=1"), Strategy{});
}

TEST(Strategy, ThePrintedFormParsesBack) {
  for (std::int64_t microbatches : {1, 2, 3, 4, 7, 1000})
    EXPECT_EQ(parse_strategy(print({.microbatches = microbatches})), Strategy{.microbatches = microbatches});
}

TEST(Strategy, IsCanonical) {
  EXPECT_EQ(print(parse_strategy("  microbatches=4   dp1 ")), "microbatches=4");
  EXPECT_EQ(print(parse_strategy("dp1\tmicrobatches=04")), "microbatches=4");
}

TEST(Strategy, UnknownKeysAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal("dp1 microbatch=4"), "unknown strategy key \"microbatch\": did you mean \"microbatches\"?");
  EXPECT_EQ(refusal("dq2"), "unknown strategy key \"dq\": did you mean \"dp\"?");
  EXPECT_EQ(refusal("4"), "unknown strategy key \"\": did you mean \"dp\"?");
}

TEST(Strategy, EveryFindingIsReported) {
  EXPECT_EQ(refusal("dp0 microbatches=x foo"),
            "\"dp0\": dp must be a whole number from 1 to 2147483648\n"
            "\"microbatches=x\": microbatches must be a whole number from 1 to 2147483648\n"
            "unknown strategy key \"foo\": did you mean \"dp\"?");
}

TEST(Strategy, DoubledKeysAreRefusedEvenWhenTheyAgree) {
  EXPECT_EQ(refusal("dp1 dp1"), "strategy key \"dp\" is doubled");
  EXPECT_EQ(refusal("microbatches=0 microbatches=2"),
            "\"microbatches=0\": microbatches must be a whole number from 1 to 2147483648\n"
            "strategy key \"microbatches\" is doubled");
}

TEST(Strategy, WrongFormsAreRefused) {
  EXPECT_EQ(refusal("dp=1"), "\"dp=1\": dp is written as in \"dp2\"");
  EXPECT_EQ(refusal("microbatches4"), "\"microbatches4\": microbatches is written as in \"microbatches=2\"");
  for (const char* text : {"dp", "dp-1", "dp1.5", "dp99999999999999999999", "microbatches=", "microbatches=-3", ""})
    EXPECT_THROW(parse_strategy(text), BadInput) << text;
}

TEST(Strategy, MoreThanOneRankIsRefusedByName) {
  EXPECT_THROW(parse_strategy("dp2"), NotSupported);
  EXPECT_EQ(refusal("dp3 microbatches=2"),
            "dp3 needs 3 ranks: training on more than one is not built; the nearest legal strategy is dp1 "
            "microbatches=3");
}

TEST(Strategy, TheTableListsEveryKeyOnce) {
  const auto keys = strategy_keys();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].standard, "dp1");
  EXPECT_EQ(keys[1].standard, "microbatches=1");
  for (const auto& key : keys) EXPECT_FALSE(key.program) << key.name << " must not change a bit";
}

}  // namespace
}  // namespace shardproof::plan
