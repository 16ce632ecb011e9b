// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_updates.hpp"

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"

namespace shardproof::plan {
namespace {

using enum WeightRule;
using Texts = std::vector<std::string>;

Texts found(std::string_view text, WeightRule rule, std::int64_t depth = 1) {
  Schedule schedule = parse_schedule(text);
  schedule.weights = rule;
  schedule.send_depth = depth;
  return texts_of(prove(schedule, extent_of(schedule)));
}

TEST(ScheduleUpdates, AFlushedScheduleHasNoneOrOneAtTheEndOfEachStage) {
  EXPECT_EQ(found("0F0,0F1,0B0,0B1", flushed), Texts());
  EXPECT_EQ(found("0F0,0F1,0B0,0B1,0U1\n1F0,1B0,1F1,1B1,1U0", flushed), Texts()) << "the name is any of them";
  EXPECT_EQ(found("0F0,0F1,0B0,0U0,0B1", flushed),
            (Texts{"rank 0: 0U0 comes before 0W1, which is of the same update"}));
  EXPECT_EQ(found("0F0,0F1,0B1,0U1,0B0", flushed),
            (Texts{"rank 0: 0U1 comes before 0W0, which is of the same update"}));
  EXPECT_EQ(found("0F0,0F1,0I0,0I1,0W1,0U1,0W0", flushed),
            (Texts{"rank 0: 0U1 comes before 0W0, which is of the same update"}));
  EXPECT_EQ(found("0F0,0F1,0B0,0B1,0U0,0U1", flushed),
            (Texts{"rank 0: 0U1 is one more than the 1 update of the stage"}));
  EXPECT_EQ(found("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1U1", flushed), (Texts{"rank 0: 0U1 is missing"}));
}

TEST(ScheduleUpdates, EveryMinibatchUpdatesItsStage) {
  for (const WeightRule rule : {stashed, vertical_sync}) {
    EXPECT_EQ(found("0F0,0B0,0U0,0F1,0B1,0U1", rule), Texts());
    EXPECT_EQ(found("0F0,0B0,0F1,0B1", rule), (Texts{"rank 0: 0U0 is missing"}));
    EXPECT_EQ(found("0F0,0B0,0U0,0F1,0B1", rule), (Texts{"rank 0: 0U1 is missing"}));
    EXPECT_EQ(found("0F0,0F1,0B1,0U1,0B0,0U0", rule),
              (Texts{"rank 0: 0U1 is not the update that is due: 0U0, after every 1 of the stage's microbatches"}));
    EXPECT_EQ(found("0F0,0B0,0U0,0U0", rule), (Texts{"rank 0: 0U0 is one more than the 1 update of the stage"}));
  }
}

TEST(ScheduleUpdates, ADoubleBufferTakesAllOfItsMicrobatches) {
  EXPECT_EQ(found("0F0,0F1,0B1,0B0,0U1,0F2,0F3,0B2,0B3,0U3", double_buffered), Texts());
  EXPECT_EQ(found("0F0,0F1,0B1,0U1,0B0", double_buffered),
            (Texts{"rank 0: 0U1 comes before 0W0, which is of the same update"}));
  // B0 would read version 0 where versions 1 and 2 are kept.
  EXPECT_EQ(found("0F0,0F1,0B1,0U1,0F2,0F3,0B3,0U3,0B0,0B2,0F4,0F5,0B4,0B5,0U5", double_buffered),
            (Texts{"rank 0: 0U1 comes before 0W0, which is of the same update"}));
  EXPECT_EQ(found("0F0,0B0,0F1,0B1", double_buffered), (Texts{"rank 0: 0U1 is missing"}));
  EXPECT_EQ(found("0F0,0B0,0F1,0B1,0U1,0F2,0B2,0F3,0B3", double_buffered), (Texts{"rank 0: 0U3 is missing"}));
  EXPECT_EQ(found("0F0,0B0,0F1,0B1,0U1,0F2,0B2,0U2", double_buffered),
            (Texts{"3 microbatches are no multiple of the 2 of an update"}));
  EXPECT_EQ(found("0F0,0F1,0B0,0B1,0U1,0F2,0F3,0B2,0B3,0U3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3,1U3", double_buffered),
            (Texts{"rank 1: 1U3 is not the update that is due: 1U1, after every 2 of the stage's microbatches"}))
      << "the first update of any stage says how many";
}

TEST(ScheduleUpdates, CopiesOfAStageUpdateItTogether) {
  // A round of two minibatches, one on each rank.
  EXPECT_EQ(found("0F0,0B0,0U0,0F2,0B2,0U2\n0F1,0B1,0U1,0F3,0B3,0U3", stashed), Texts());
  EXPECT_EQ(found("0F0,0B0,0U0,0F1,0B1,0U1\n0F2,0B2,0U2,0F3,0B3,0U3", stashed),
            (Texts{"rank 0: stage 0: an update is of 2 microbatches, and none of 2 to 3 is on this rank",
                   "rank 1: stage 0: an update is of 2 microbatches, and none of 0 to 1 is on this rank"}));
  EXPECT_EQ(found("0F0,0B0,0U0,0F2,0B2,0U2\n0F1,0B1,0U1", stashed),
            (Texts{"rank 1: stage 0: an update is of 2 microbatches, and none of 2 to 3 is on this rank"}));
  EXPECT_EQ(found("0F0,1F1,1B1,0B0,0U0\n1F0,0F1,1B0,0B1", flushed),
            (Texts{"rank 0: 1U1 is missing", "rank 1: 0U1 is missing", "rank 1: 1U0 is missing"}));
}

TEST(ScheduleUpdates, CopiesWaitForEachOtherInTheirUpdates) {
  const std::string_view together = "0F0,1F1,1B1,0B0,1U1,0U0\n1F0,0F1,1B0,0B1,1U0,0U1";
  EXPECT_EQ(found(together, flushed), Texts());
  EXPECT_EQ(
      found("0F0,1F1,1B1,0B0,1U1,0U0\n1F0,0F1,1B0,0B1,0U1,1U0", flushed),
      (Texts{"rank 0: deadlock with sends of depth 1: rank 0 waits in 1U1 for the update of rank 1; rank 1 waits in "
             "0U1 for the update of rank 0"}));
  // Rank 0 waits after its part of stage 1 for rank 1, whose part needs 0F0 of rank 0: a circle of a sum and a message.
  EXPECT_EQ(
      found("1F1,1B1,1U1,0F0,0B0,0U0\n1F0,1B0,1U0\n0F1,0B1,0U1", flushed),
      (Texts{"rank 0: deadlock with sends of depth 1: rank 0 waits in 1U1 for the update of rank 1; rank 1 waits in "
             "1F0 for 0F0 of rank 0"}));
  EXPECT_EQ(found("1F1,1B1,0F0,0B0\n1F0,1B0\n0F1,0B1", flushed), Texts())
      << "without U the sums come after all actions";
}

TEST(ScheduleUpdates, AreOfSoManyMicrobatches) {
  Schedule schedule = parse_schedule("0F0,0B0\n0F1,0B1\n1F0,1F1,1B0,1B1,1U1");
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(copies_of_stages(schedule, 2), (Counts{2, 1}));
  const ScheduleExtent extent{2, 6, 0};
  EXPECT_EQ(microbatches_per_update(schedule, extent), (Counts{6, 6}));
  schedule.weights = stashed;
  EXPECT_EQ(microbatches_per_update(schedule, extent), (Counts{2, 1}));
  schedule.weights = double_buffered;
  EXPECT_EQ(microbatches_per_update(schedule, extent), (Counts{2, 2}));
}

}  // namespace
}  // namespace shardproof::plan
