// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"
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
  for (const char* text : {"0", "0F-1", "-1F0", "0F0;0F1", "0SEND_F0", "0F0 0F1", "0 F0"})
    EXPECT_THROW(parse_schedule(text), BadInput) << text;
}

TEST(Schedules, AreThoseOfTheTable) {
  std::vector<std::string_view> names;
  for (const auto* generator : schedules()) names.push_back(generator->name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"naive", "gpipe"}));
  EXPECT_EQ(schedule_generator("gpipe").name, "gpipe");
  EXPECT_THROW(schedule_generator("gpip"), BadInput);
}

TEST(Schedules, NaiveSendsEachMicrobatchForwardAndBack) {
  const Schedule schedule = schedule_generator("naive").generate({.ranks = 2, .microbatches = 3});
  EXPECT_EQ(print(schedule), "0F0,0B0,0F1,0B1,0F2,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST(Schedules, GpipeGoesForwardWithAllThenBack) {
  const Schedule schedule = schedule_generator("gpipe").generate({.ranks = 2, .microbatches = 3});
  EXPECT_EQ(print(schedule), "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
}

TEST(Schedules, AreProvenAndParseBack) {
  for (const auto* generator : schedules())
    for (const std::int64_t ranks : {1, 2, 3, 5, 8})
      for (const std::int64_t microbatches : {1, 2, 4, 7}) {
        Schedule schedule = generator->generate({.ranks = ranks, .microbatches = microbatches});
        EXPECT_EQ(parse_schedule(print(schedule)).ranks, schedule.ranks);
        for (const std::int64_t more : {0, 1, 3}) {
          schedule.send_depth += more;
          EXPECT_EQ(findings(schedule, ranks, microbatches), std::vector<std::string>())
              << generator->name << " " << ranks << " " << microbatches;
        }
      }
}

TEST(Schedules, GpipeHoldsAllMicrobatchesAndNaiveOne) {
  for (const std::int64_t ranks : {1, 2, 5})
    for (const std::int64_t microbatches : {1, 3, 8}) {
      const std::vector<std::int64_t> all(static_cast<std::size_t>(ranks), microbatches);
      const std::vector<std::int64_t> one(static_cast<std::size_t>(ranks), 1);
      EXPECT_EQ(peak_in_flight(schedule_generator("gpipe").generate({ranks, microbatches})), all);
      EXPECT_EQ(peak_in_flight(schedule_generator("naive").generate({ranks, microbatches})), one);
    }
}

}  // namespace
}  // namespace shardproof::plan
