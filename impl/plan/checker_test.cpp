// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/checker.hpp"

#include <gtest/gtest.h>

namespace shardproof::plan {
namespace {

using Texts = std::vector<std::string>;

Texts found(std::string_view schedule, std::int64_t stages, std::int64_t microbatches, std::int64_t depth = 0) {
  Schedule parsed = parse_schedule(schedule);
  parsed.send_depth = depth;
  return findings(parsed, stages, microbatches);
}

TEST(Checker, ALegalScheduleHasNoFinding) {
  EXPECT_EQ(found("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1", 2, 2), Texts());
  EXPECT_EQ(found("0F0,0F1,0I0,0I1,0W1,0W0\n1F0,1F1,1I0,1W0,1B1", 2, 2), Texts());
  EXPECT_EQ(found("0F0,0B0,0U0\n1F0,1B0,1U0", 2, 1), Texts());
}

TEST(Checker, SeveralStagesOfOneRankMeetWithoutMessages) {
  EXPECT_EQ(found("0F0,1F0,2F0,2B0,1B0,0B0", 3, 1), Texts());
  EXPECT_EQ(found("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0", 4, 1), Texts());
}

TEST(Checker, FindsActionsOfAnotherRank) {
  EXPECT_EQ(found("0F0,0B0,1F0\n1B0", 2, 1),
            (Texts{"rank 0: 1F0 belongs on rank 1", "rank 1: 1B0 comes before 1F0", "rank 1: 1F0 is missing"}));
}

TEST(Checker, FindsDoubledActions) {
  EXPECT_EQ(found("0F0,0F0,0B0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0F0 is doubled"}));
  EXPECT_EQ(found("0F0,0B0\n1F0,1I0,1B0", 2, 1), (Texts{"rank 1: 1B0 doubles 1I0"}));
  EXPECT_EQ(found("0F0,0B0,0W0\n1F0,1B0,1U0,1U0", 2, 1), (Texts{"rank 0: 0W0 is doubled", "rank 1: 1U0 is doubled"}));
}

TEST(Checker, FindsMissingActions) {
  EXPECT_EQ(found("0F0,0B0\n1F0,1I0", 2, 1), (Texts{"rank 1: 1W0 is missing"}));
  EXPECT_EQ(found("0F0,0B0\n1F0,1B0", 2, 2).size(), 6u);
  EXPECT_EQ(found("0F0,0B0\n1F0,1B0", 2, 2)[0], "rank 0: 0F1 is missing");
}

TEST(Checker, CountsWhatItDoesNotName) {
  const Texts texts = found("0F0,0B0\n", std::int64_t{1} << 31, std::int64_t{1} << 31);
  ASSERT_EQ(texts.size(), 11u);
  EXPECT_EQ(texts[0], "rank 0: 0F1 is missing");
  EXPECT_EQ(texts[10], "13835058055282163699 more actions are missing");  // 3 (2^62 - 1) - 10
}

TEST(Checker, FindsStagesAndMicrobatchesThatDoNotExist) {
  EXPECT_EQ(found("0F0,0B0,2F0\n1F0,1B0,1F1", 2, 1),
            (Texts{"rank 0: 2F0 is of stage 2 of 2", "rank 1: 1F1 is of microbatch 1 of 1"}));
}

TEST(Checker, FindsWrongOrderOnARank) {
  EXPECT_EQ(found("0B0,0F0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0B0 comes before 0F0"}));
  EXPECT_EQ(found("0F0,0W0,0I0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0W0 comes before 0I0"}));
  EXPECT_EQ(found("0F0,0U0,0B0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0U0 comes before 0W0"}));
}

TEST(Checker, FindsThatRanksWaitForEachOther) {
  EXPECT_EQ(found("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0", 2, 2),
            (Texts{"deadlock with rendezvous sends: rank 0 waits in 0F0 for rank 1 to receive; rank 1 waits in 1F1 for "
                   "0F1 of rank 0, which sent 0F0 first"}));
  EXPECT_EQ(found("1F0,0F0,0B0,1B0", 2, 1),
            (Texts{"deadlock with rendezvous sends: rank 0 waits in 1F0 for 0F0 of rank 0"}));
}

TEST(Checker, FindsMessagesThatAreReceivedInAnotherOrder) {
  EXPECT_EQ(found("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1", 2, 2, 2).size(), 1u);
  EXPECT_EQ(found("0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0", 2, 2, 2),
            (Texts{"deadlock with sends of depth 2: rank 0 waits in 0B0 for 1I0 of rank 1, which sent 1I1 first"}));
}

// Both neighbours send at once: one must be free to go on.
TEST(Checker, DependsOnTheRuleForSends) {
  const char* const ahead = "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2";
  EXPECT_EQ(found(ahead, 2, 3, 0),
            (Texts{"deadlock with rendezvous sends: rank 0 waits in 0F1 for rank 1 to receive; rank 1 waits in 1B0 for "
                   "rank 0 to receive"}));
  EXPECT_EQ(found(ahead, 2, 3, 1), Texts());
}

TEST(Checker, AnEmptyScheduleIsNotLegal) { EXPECT_EQ(findings({}, 1, 1).size(), 1u); }

TEST(Checker, ActivationsAreHeldUntilTheWeightsBackward) {
  EXPECT_EQ(peak_in_flight(parse_schedule("0F0,0F1,0I0,0F2,0W0,0W1,0W2\n1F0,1B0,1F1,1B1\n\n")),
            (std::vector<std::int64_t>{3, 1, 0}));
}

}  // namespace
}  // namespace shardproof::plan
