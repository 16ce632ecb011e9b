// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

std::string refusal(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Schedule, ReadsEveryKindOfAction) {
  const Schedule schedule = parse_schedule("0F0,0B0,2I11\n,1F0, ,1W3,12U7\n");
  EXPECT_EQ(schedule, (Schedule{{{{0, forward, 0}, {0, backward, 0}, {2, backward_input, 11}},
                                 {{1, forward, 0}, {1, backward_weight, 3}, {12, update, 7}}}}));
  EXPECT_EQ(print(schedule), "0F0,0B0,2I11\n1F0,1W3,12U7\n");
}

TEST(Schedule, LinesMayEndAsPythonEndsThem) {
  EXPECT_EQ(parse_schedule("0F0,,0B0\r\n,1F0,1B0,\r\n"), parse_schedule("0F0,0B0\n1F0,1B0"));
}

TEST(Schedule, ARankMayHaveNoAction) {
  EXPECT_EQ(parse_schedule("\n0F0\n\n"), (Schedule{{{}, {{0, forward, 0}}, {}}}));
  EXPECT_EQ(print(parse_schedule("\n0F0\n\n")), "\n0F0\n\n");
}

TEST(Schedule, EveryErrorIsReportedWithItsPlace) {
  EXPECT_EQ(refusal("0F0,F1,0X1,0F\n1F0,  0F1x,2147483649F0,0F99999999999999999999"),
            "schedule: line 1, column 5: \"F1\" is no action: they are written as 0F1, stage, kind, microbatch\n"
            "schedule: line 1, column 9: \"0X1\" is no action: its kind must be F, I, W, B or U and be followed by a "
            "number\n"
            "schedule: line 1, column 13: \"0F\" is no action: its kind must be F, I, W, B or U and be followed by a "
            "number\n"
            "schedule: line 2, column 8: \"0F1x\" is no action: its kind must be F, I, W, B or U and be followed by a "
            "number\n"
            "schedule: line 2, column 12: \"2147483649F0\": the stage must be a whole number from 0 to 2147483648\n"
            "schedule: line 2, column 27: \"0F99999999999999999999\": the microbatch must be a whole number from 0 to "
            "2147483648");
  EXPECT_EQ(refusal(""), "schedule: line 1, column 1: there is no rank: each is a line");
  for (const char* text : {"0", "0F-1", "-1F0", "0F0;0F1", "SEND_F0", "0SEND_F0x", "0F0 0F1", "0 F0"})
    EXPECT_THROW(parse_schedule(text), BadInput) << text;
}

TEST(Schedule, SlicesAreWrittenAfterAPoint) {
  const Schedule schedule = parse_schedule("0F1.0,0F1.12,0B1.12,0U1");
  EXPECT_EQ(schedule.ranks[0],
            (std::vector<Action>{{0, forward, 1, 0}, {0, forward, 1, 12}, {0, backward, 1, 12}, {0, update, 1}}));
  EXPECT_EQ(print(schedule), "0F1.0,0F1.12,0B1.12,0U1\n");
  EXPECT_EQ(refusal("0F1."),
            "schedule: line 1, column 4: \"0F1.\" is no action: after the point comes the slice, a number");
  EXPECT_EQ(refusal("0F1.2147483649"),
            "schedule: line 1, column 5: \"0F1.2147483649\": the slice must be a whole number from 0 to 2147483648");
  EXPECT_EQ(refusal("0F1.0,0U1.3"),
            "schedule: line 1, column 10: \"0U1.3\" is no action: an update is of a stage, it has no slice");
}

// As its _PipelineScheduleRuntime prints and reads them, with communication and with overlapped pairs.
TEST(Schedule, PyTorchFilesReadUnchanged) {
  const Schedule schedule = parse_schedule(
      "0UNSHARD,0F0,0SEND_F0,,0RECV_B0,0I0,0W0,0RESHARD,0REDUCE_GRAD\n"
      "1UNSHARD,1RECV_F0,(1F0;1B0)OVERLAP_F_B, (1F1 ; 1I1)OVERLAP_F_B,1SEND_B0\n");
  EXPECT_EQ(print(schedule), "0F0,0I0,0W0\n1F0,1B0,1F1,1I1\n");
  EXPECT_EQ(refusal("0F0,(1F0;1X0)OVERLAP_F_B"),
            "schedule: line 1, column 11: \"1X0\" is no action: its kind must be F, I, W, B or U and be followed by a "
            "number");
  EXPECT_EQ(refusal("(1F0)1OVERLAP_F_B"),
            "schedule: line 1, column 1: \"(1F0)1OVERLAP_F_B\" is no pair of actions: they are written as "
            "(0F1;1B0)OVERLAP_F_B");
}

TEST(Schedule, AnOverlappedPairIsAForwardAndABackward) {
  for (const std::string pair : {"(0F0)OVERLAP_F_B", "(0F0;0B1;0F1)OVERLAP_F_B", "(0I0;0W0)OVERLAP_F_B",
                                 "(0B0;0F1)OVERLAP_F_B", "(0F0;0W1)OVERLAP_F_B", "(0F0;0U0)OVERLAP_F_B"})
    EXPECT_EQ(refusal("0F0," + pair),
              "schedule: line 1, column 5: \"" + pair + "\" is no pair: it is of one forward, then one backward");
}

TEST(Schedule, AByteOrderMarkIsNamed) {
  EXPECT_EQ(refusal("\xEF\xBB\xBF"
                    "0F0"),
            "schedule: line 1, column 1: the text begins with a byte order mark: it must begin with an action");
}

TEST(Schedule, RulesForWeightsHaveNames) {
  for (const std::string_view name : weight_rule_names()) EXPECT_EQ(print(weight_rule(name)), name);
  EXPECT_EQ(print(WeightRule::double_buffered), "double_buffered");
  EXPECT_THROW(weight_rule("flush"), BadInput);
}

TEST(Schedule, KnowsTheColumnsOfItsActions) {
  Columns columns;
  parse_schedule("0F0, ,0SEND_F0,  0B0\n\n(1F0;1B0)OVERLAP_F_B", columns);
  EXPECT_EQ(columns, (Columns{{1, 18}, {}, {2, 6}}));
}

TEST(Schedule, MoreRanksThanAnyoneHasAreRefusedAtOnce) {
  EXPECT_EQ(refusal(std::string((1 << 20) + 1, '\n')), "schedule: 1048577 lines: it may have at most 1048576 ranks");
}

TEST(Schedule, OfManyErrorsTheFirstHundredAreNamed) {
  std::string text;
  for (int k = 0; k < 1000; ++k) text += "x,";
  const std::string all = refusal(text);
  EXPECT_EQ(std::ranges::count(all, '\n'), 100);
  EXPECT_TRUE(all.ends_with("\nschedule: 900 more findings")) << all.substr(all.size() - 60);
}

}  // namespace
}  // namespace shardproof::plan
