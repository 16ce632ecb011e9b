// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_messages.hpp"

#include <gtest/gtest.h>

namespace shardproof::plan {
namespace {

std::string found(std::string_view text, std::int64_t depth) {
  Schedule schedule = parse_schedule(text);
  schedule.send_depth = depth;
  const ScheduleIndex index(schedule, extent_of(schedule));
  const auto circle = deadlock(schedule, index);
  return circle ? circle->text : "";
}

TEST(ScheduleMessages, OneCircleIsNamedNotAllThatWaitForIt) {
  // Ranks 1 and 2 wait for each other, rank 0 for rank 1.
  EXPECT_EQ(
      found("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1", 0),
      "deadlock with rendezvous sends: rank 1 waits in 1F1 for rank 2 to receive; rank 2 waits in 2B0 for rank 1 to "
      "receive");
}

TEST(ScheduleMessages, AMessageBehindAnotherIsNobodyElsesToReceive) {
  EXPECT_EQ(found("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1", 2),
            "deadlock with sends of depth 2: rank 1 waits in 1F1 for 0F1 of rank 0, which sent 0F0 first");
}

/// Around a ring of ranks each sends first: one circle of all of them.
TEST(ScheduleMessages, OfALongCircleTenAreNamed) {
  const std::int64_t ranks = 1000;
  Schedule schedule;
  for (std::int64_t r = 0; r < ranks;
       ++r) {  // rank r holds stages r and r + ranks; sends the first's, needs the last's
    auto& actions = schedule.ranks.emplace_back();
    for (const std::int64_t stage : {r + ranks, r}) actions.push_back({stage, ActionKind::forward, 0});
    for (const std::int64_t stage : {r + ranks, r}) actions.push_back({stage, ActionKind::backward, 0});
  }
  const ScheduleIndex index(schedule, extent_of(schedule));
  const auto circle = deadlock(schedule, index);
  ASSERT_TRUE(circle);
  EXPECT_TRUE(
      circle->text.starts_with("deadlock with rendezvous sends: rank 0 waits in 1000F0 for 999F0 of rank 999; "))
      << circle->text;
  EXPECT_TRUE(circle->text.ends_with("; and so on over 990 more ranks")) << circle->text;
}

TEST(ScheduleMessages, DepthIsOfEachDirectionBetweenTwoRanks) {
  // Rank 0 sends three forwards before rank 1 receives any after its first backward.
  const char* const ahead = "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3";
  EXPECT_NE(found(ahead, 1), "");
  EXPECT_EQ(found(ahead, 2), "");
}

}  // namespace
}  // namespace shardproof::plan
