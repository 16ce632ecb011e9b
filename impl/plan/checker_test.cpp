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
  EXPECT_EQ(found("0F0,0B0,1F0\n1B0", 2, 1), (Texts{"rank 1: 1B0 belongs on rank 0, where 1F0 is"}));
  EXPECT_EQ(found("0F0,0I0\n1F0,1B0,0W0", 2, 1), (Texts{"rank 1: 0W0 belongs on rank 0, where 0F0 is"}));
}

TEST(Checker, FindsDoubledActions) {
  EXPECT_EQ(found("0F0,0F0,0B0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0F0 is doubled"}));
  EXPECT_EQ(found("0F0,0B0\n1F0,1I0,1B0", 2, 1), (Texts{"rank 1: 1B0 doubles 1I0"}));
  EXPECT_EQ(found("0F0,0B0,0W0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0W0 is doubled"}));
  EXPECT_EQ(found("0F0,0B0,1F0\n1F0,1B0", 2, 1),
            (Texts{"rank 1: 1F0 is doubled: it is on rank 0 too", "rank 1: 1B0 belongs on rank 0, where 1F0 is"}));
}

TEST(Checker, FindsMissingActions) {
  EXPECT_EQ(found("0F0,0B0\n1F0,1I0", 2, 1), (Texts{"rank 1: 1W0 is missing"}));
  EXPECT_EQ(found("0F0,0B0\n1F0,1B0", 2, 2).size(), 6u);
  EXPECT_EQ(found("0F0,0B0\n1F0,1B0", 2, 2)[0], "rank 0: 0F1 is missing");
}

TEST(Checker, CountsWhatItDoesNotName) {
  const Texts texts = found("0F0,0B0\n", std::int64_t{1} << 31, std::int64_t{1} << 31);
  ASSERT_EQ(texts.size(), 12u);
  EXPECT_EQ(texts[0], "2 actions cannot be all of 2147483648 stages and 2147483648 microbatches");
  EXPECT_EQ(texts[1], "rank 0: 0F1 is missing");
  EXPECT_EQ(texts[11], "13835058055282163699 more actions are missing");  // 3 (2^62 - 1) - 10
}

// 2^31 stages, microbatches and four slices are 2^64 units, 0 in 64 bits.
TEST(Checker, CountsBeyond64Bits) {
  const Schedule schedule = parse_schedule("2147483647F2147483647.3");
  const Texts texts = texts_of(prove(schedule, extent_of(schedule)));
  ASSERT_EQ(texts.size(), 12u);
  EXPECT_EQ(texts[0], "1 action cannot be all of 2147483648 stages and 2147483648 microbatches in 4 slices");
  EXPECT_EQ(texts[1], "0F0.0 is missing");
  EXPECT_EQ(texts[11], "55340232221128654837 more actions are missing");  // 3 x 2^64 - 1 - 10
}

TEST(Checker, OfManyFindingsTheFirstHundredAreNamed) {
  Schedule schedule{{{{0, ActionKind::forward, 0}, {0, ActionKind::backward, 0}}}};
  for (int k = 0; k < 1000; ++k) schedule.ranks[0].push_back({0, ActionKind::forward, 0});
  const Texts texts = findings(schedule, 1, 1);
  ASSERT_EQ(texts.size(), 101u);
  EXPECT_EQ(texts[99], "rank 0: 0F0 is doubled");
  EXPECT_EQ(texts[100], "900 more findings");
  // One finding of an update, not one of each slice that it lacks.
  EXPECT_EQ(texts_of(prove(parse_schedule("0U0,0F0,0B0"), {.stages = 1, .microbatches = 1, .slices = 2}))[0],
            "rank 0: 0U0 comes before 0W0.0");
}

TEST(Checker, FindsStagesAndMicrobatchesThatDoNotExist) {
  EXPECT_EQ(found("0F0,0B0,2F0\n1F0,1B0,1F1", 2, 1),
            (Texts{"rank 0: 2F0 is of stage 2: they are 0 to 1", "rank 1: 1F1 is of microbatch 1: they are 0 to 0"}));
}

TEST(Checker, FindsARankWithoutAnAction) {
  EXPECT_EQ(found("0F0,0B0\n\n", 1, 1), (Texts{"rank 1: there is no action"}));
}

TEST(Checker, AnUpdateBelongsWhereItsForwardIs) {
  EXPECT_EQ(found("1U0,0F0,0B0\n1F0,1B0", 2, 1), (Texts{"rank 0: 1U0 belongs on rank 1, where 1F0 is"}));
  EXPECT_EQ(found("0F0,0B0\n1F0,1B0,0U0", 2, 1), (Texts{"rank 1: 0U0 belongs on rank 0, where 0F0 is"}));
}

TEST(Checker, FindsWrongOrderOnARank) {
  EXPECT_EQ(found("0B0,0F0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0B0 comes before 0F0"}));
  EXPECT_EQ(found("0F0,0W0,0I0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0W0 comes before 0I0"}));
  EXPECT_EQ(found("0F0,0U0,0B0\n1F0,1B0", 2, 1), (Texts{"rank 0: 0U0 comes before 0W0"}));
}

TEST(Checker, FindsThatRanksWaitForEachOther) {
  EXPECT_EQ(
      found("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0", 2, 2),
      (Texts{
          "rank 0: deadlock with rendezvous sends: rank 0 waits in 0F0 for rank 1 to receive; rank 1 waits in 1F1 for "
          "0F1 of rank 0, which sent 0F0 first"}));
  EXPECT_EQ(found("1F0,0F0,0B0,1B0", 2, 1),
            (Texts{"rank 0: deadlock with rendezvous sends: rank 0 waits in 1F0 for 0F0 of rank 0"}));
}

TEST(Checker, FindsMessagesThatAreReceivedInAnotherOrder) {
  EXPECT_EQ(found("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1", 2, 2, 2).size(), 1u);
  EXPECT_EQ(
      found("0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0", 2, 2, 2),
      (Texts{"rank 0: deadlock with sends of depth 2: rank 0 waits in 0B0 for 1I0 of rank 1, which sent 1I1 first"}));
}

// Both neighbours send at once: one must be free to go on.
TEST(Checker, DependsOnTheRuleForSends) {
  const char* const ahead = "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2";
  EXPECT_EQ(
      found(ahead, 2, 3, 0),
      (Texts{
          "rank 0: deadlock with rendezvous sends: rank 0 waits in 0F1 for rank 1 to receive; rank 1 waits in 1B0 for "
          "rank 0 to receive"}));
  EXPECT_EQ(found(ahead, 2, 3, 1), Texts());
}

TEST(Checker, AnEmptyScheduleIsNotLegal) {
  EXPECT_EQ(findings({}, 1, 1).size(), 1u);
  EXPECT_EQ(found("\n\n", 0, 0), (Texts{"there is no action"}));
}

TEST(Checker, SlicesGoForwardsInTimeAndBackAgainstIt) {
  const auto of_two = [](std::string_view text) {
    return texts_of(prove(parse_schedule(text), {.stages = 1, .microbatches = 1, .slices = 2}));
  };
  EXPECT_EQ(of_two("0F0.0,0F0.1,0B0.1,0B0.0,0U0"), Texts());
  EXPECT_EQ(of_two("0F0.1,0F0.0,0B0.1,0B0.0"), (Texts{"rank 0: 0F0.1 comes before 0F0.0"}));
  EXPECT_EQ(of_two("0F0.0,0F0.1,0B0.0,0B0.1"), (Texts{"rank 0: 0B0.0 comes before 0I0.1"}));
  EXPECT_EQ(of_two("0F0.0,0F0.1,0B0.1,0U0,0B0.0"), (Texts{"rank 0: 0U0 comes before 0W0.0"}));
  EXPECT_EQ(of_two("0F0.0,0F0.1,0B0.1,0B0.0,0F0"),
            (Texts{"rank 0: 0F0 is of a whole sequence, where others are cut in 2 slices"}));
  EXPECT_EQ(
      findings({{{{0, ActionKind::forward, 0}, {0, ActionKind::backward, 0}, {0, ActionKind::forward, 0, 1}}}}, 1, 1),
      (Texts{"rank 0: 0F0.1 is of a slice, where others are of whole sequences"}));
  EXPECT_EQ(
      findings({{{{0, ActionKind::forward, 0}, {0, ActionKind::backward, 0}, {0, ActionKind::update, 0, 3}}}}, 1, 1),
      (Texts{"rank 0: 0U0.3 is of a slice: an update is of a stage"}));
  EXPECT_EQ(of_two("0F0.0,0F0.1,0F0.2,0B0.1,0B0.0"), (Texts{"rank 0: 0F0.2 is of slice 2: they are 0 to 1"}));
  EXPECT_EQ(of_two("0F0.0,0B0.0"), (Texts{"rank 0: 0B0.0 comes before 0I0.1", "rank 0: 0F0.1 is missing",
                                          "rank 0: 0I0.1 is missing", "rank 0: 0W0.1 is missing"}));
}

TEST(Checker, MirrorsFinishTheirStagesInOneOrder) {
  const std::string sums =
      "rank 0: sums over copies of stages wait for each other, by the order in which ranks finish them:";
  EXPECT_EQ(found("0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1", 2, 2, 1), Texts());
  EXPECT_EQ(found("0F0,1F1,1B1,0B0\n0F1,1F0,0B1,1B0", 2, 2, 1), (Texts{sums + " rank 0 1, 0; rank 1 0, 1"}));
  EXPECT_EQ(found("0F0,1F0,2F0,2B0,1B0,0B0\n0F1,1F1,2F1,2B1,1I1,0B1,1W1", 3, 2),
            (Texts{sums + " rank 0 1, 0; rank 1 0, 1"}))
      << "stage 2 is the first on both";
  // No two of these three ranks share two stages; all together they wait round in a circle.
  EXPECT_EQ(found("0F0,1F1,1B1,0B0\n1F0,2F1,2B1,1B0\n2F0,0F1,0B1,2B0", 3, 2, 1),
            (Texts{sums + " rank 0 1, 0; rank 1 2, 1; rank 2 0, 2"}));
}

TEST(Checker, ReadsTheVersionThatTheRuleGives) {
  const auto with = [](std::string_view text, WeightRule rule, std::int64_t stages, std::int64_t microbatches) {
    Schedule schedule = parse_schedule(text);
    schedule.weights = rule;
    schedule.send_depth = 1;
    return findings(schedule, stages, microbatches);
  };
  const char* const one_by_one = "0F0,0B0,0U0,0F1,0B1,0U1";
  EXPECT_EQ(with(one_by_one, WeightRule::flushed, 1, 2),
            (Texts{"rank 0: 0U0 comes before 0W1, which is of the same update"}));
  EXPECT_EQ(with(one_by_one, WeightRule::stashed, 1, 2), Texts());
  EXPECT_EQ(with("0F0,0F1,0B0,0U0,0B1,0U1\n1F0,1B0,1U0,1F1,1B1,1U1", WeightRule::vertical_sync, 2, 2), Texts());
  EXPECT_EQ(
      with("0F0,0B0,0U0,0F1,0B1,0U1\n1F0,1B0,1F1,1B1,1U0,1U1", WeightRule::vertical_sync, 2, 2),
      (Texts{"rank 1: 1F1 reads version 1 of stage 1's weights before it is written: there have been 0 updates"}));
  // Of two microbatches an update: 0 to 3 read version 0, 4 and 5 version 1.
  EXPECT_EQ(with("0F0,0B0,0F1,0B1,0U1,0F2,0B2,0F3,0B3,0U3,0F4,0B4,0F5,0B5,0U5", WeightRule::double_buffered, 1, 6),
            Texts());
  EXPECT_EQ(
      with("0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3,0F4,0B4,0F5,0B5,0U1,0U3,0U5", WeightRule::double_buffered, 1, 6),
      (Texts{"rank 0: 0F4 reads version 1 of stage 0's weights before it is written: there have been 0 updates",
             "rank 0: 0F5 reads version 1 of stage 0's weights before it is written: there have been 0 updates"}));
  EXPECT_EQ(with("0F0,0B0,0F1,0B1,0U1,0F2,0B2,0U2,0F3,0B3,0U3", WeightRule::double_buffered, 1, 4),
            (Texts{"rank 0: 0U2 is not the update that is due: 0U3, after every 2 of the stage's microbatches"}));
}

TEST(Checker, FindingsHaveTheirPlace) {
  const auto place = [](std::string_view text, std::int64_t depth) {
    Schedule schedule = parse_schedule(text);
    schedule.send_depth = depth;
    const auto found = prove(schedule, extent_of(schedule));
    return found.size() == 1 ? std::pair(found[0].rank, found[0].at) : std::pair<std::int64_t, std::int64_t>(-2, -2);
  };
  using Place = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(place("0F0,0B0\n1B0,1F0", 0), (Place{1, 0}));
  EXPECT_EQ(place("0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0", 2), (Place{0, 2})) << "a deadlock: the first blocked action";
  EXPECT_EQ(place("0F0,1F1,1B1,0B0\n0F1,1F0,0B1,1B0", 1), (Place{0, 2})) << "mirrors: the first that is finished";
}

TEST(Checker, ActivationsAreHeldUntilTheWeightsBackward) {
  EXPECT_EQ(peak_in_flight(parse_schedule("0F0,0F1,0I0,0F2,0W0,0W1,0W2\n1F0,1B0,1F1,1B1\n\n")),
            (std::vector<std::int64_t>{3, 1, 0}));
}

}  // namespace
}  // namespace shardproof::plan
