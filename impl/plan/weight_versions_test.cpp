// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/weight_versions.hpp"

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"

namespace shardproof::plan {
namespace {

using enum WeightRule;
using Rows = std::vector<std::vector<std::int64_t>>;

WeightVersions of(std::string_view text, WeightRule rule) {
  Schedule schedule = parse_schedule(text);
  schedule.weights = rule;
  const ScheduleIndex index(schedule, extent_of(schedule));
  return weight_versions(schedule, index);
}

TEST(WeightVersions, ForwardReadsTheLatestAndBackwardTheSame) {
  const WeightVersions versions = of("0F0,0F1,0B0,0U0,0F2,0B1,0U1,0I2,0W2,0U2", stashed);
  EXPECT_EQ(versions.read, (Rows{{0, 0, 0, 1, 1, 0, 2, 1, 1, 3}}));
  EXPECT_EQ(versions.most_kept, (std::vector<std::int64_t>{2})) << "version 0 for 0B1 and version 1";
}

TEST(WeightVersions, SlicesOfASequenceReadOneVersion) {
  EXPECT_EQ(of("0F0.0,0F0.1,0F1.0,0B0.1,0B0.0,0U0,0F1.1,0B1.1,0B1.0,0U1", stashed).read,
            (Rows{{0, 0, 0, 0, 0, 1, 0, 0, 0, 2}}));
}

TEST(WeightVersions, WithVerticalSyncAllStagesReadWhatStage0Met) {
  EXPECT_EQ(of("0F0,0F1,0B0,0U0,0F2,0B1,0U1,0B2,0U2\n1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2", vertical_sync).read,
            (Rows{{0, 0, 0, 1, 1, 0, 2, 1, 3}, {0, 0, 1, 0, 0, 2, 1, 1, 3}}));
}

/// Ranks 0 and 1 share stages 0 and 1, each with its own half: what a stage reads does not depend on the ranks' order.
TEST(WeightVersions, StageZeroMayBeOnAnyRank) {
  const std::string one = "1F0,1B0,1U0,0F1,0B1,0U1,1F2,1B2,1U2,0F3,0B3,0U3\n";
  const std::string other = "0F0,0B0,0U0,1F1,1B1,1U1,0F2,0B2,0U2,1F3,1B3,1U3\n";
  const Rows read = {{0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 1, 2}, {0, 0, 1, 0, 0, 1, 1, 1, 2, 1, 1, 2}};
  EXPECT_EQ(of(one + other, vertical_sync).read, read);
  EXPECT_EQ(of(other + one, vertical_sync).read, read);
}

/// Of minibatches 2 and 3 stage 0 has met the weights of two, on one rank after two updates, on two ranks after one.
TEST(WeightVersions, CopiesCountInMinibatches) {
  const std::string two_then_one =
      "0F0,0B0,0U0,0F2,0B2,0U2\n0F1,0B1,0U1,0F3,0B3,0U3\n1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2,1F3,1B3,1U3";
  const WeightVersions versions = of(two_then_one, vertical_sync);
  EXPECT_EQ(versions.read[0], (std::vector<std::int64_t>{0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(versions.read[2], (std::vector<std::int64_t>{0, 0, 1, 0, 0, 2, 2, 2, 3, 2, 2, 4}));
  EXPECT_TRUE(versions.findings.empty());
  const WeightVersions odd =
      of("0F0,0B0,0U0,0F1,0B1,0U1,0F2,0B2,0U2,0F3,0B3,0U3\n1F0,1B0,1U0,1F2,1B2,1U2\n1F1,1B1,1U1,1F3,1B3,1U3",
         vertical_sync);
  EXPECT_EQ(texts_of(odd.findings),
            (std::vector<std::string>{
                "rank 2: 1F1 reads the weights of 1 minibatches, as at stage 0: stage 1 has them of multiples of 2",
                "rank 2: 1F3 reads the weights of 3 minibatches, as at stage 0: stage 1 has them of multiples of 2"}));
}

TEST(WeightVersions, DoubleBuffersReadOneUpdateLate) {
  const WeightVersions versions = of("0F0,0B0,0F1,0B1,0U1,0F2,0B2,0F3,0B3,0U3,0F4,0B4,0F5,0B5,0U5", double_buffered);
  EXPECT_EQ(versions.read, (Rows{{0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 1, 1, 1, 1, 3}}));
  EXPECT_EQ(versions.most_kept, (std::vector<std::int64_t>{2}));
}

}  // namespace
}  // namespace shardproof::plan
