// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/timeline.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

Timeline of(std::string_view name, std::int64_t ranks, std::int64_t microbatches, const ActionCosts& costs = {}) {
  return timeline(schedule_generator(name).generate({ranks, microbatches}), costs);
}

// Narayanan et al. 2021, section 2.2.1: the bubble of gpipe is (p-1)(t_f + t_b), the ideal time m (t_f + t_b). Costs
// are F 1 and B 2, so every time is a small whole number; the quotient is one rounding away from the form.
TEST(Timeline, TheBubbleOfGpipeIsThatOfThePaper) {
  for (const std::int64_t p : {1, 2, 3, 4, 8})
    for (const std::int64_t m : {1, 2, 4, 7, 32}) {
      const Timeline line = of("gpipe", p, m);
      EXPECT_EQ(line.makespan, static_cast<double>(3 * (m + p - 1)));
      EXPECT_EQ(line.busy, static_cast<double>(3 * m * p));
      EXPECT_DOUBLE_EQ(line.bubble_overhead(), static_cast<double>(p - 1) / static_cast<double>(m));
      EXPECT_DOUBLE_EQ(line.bubble_fraction(), static_cast<double>(p - 1) / static_cast<double>(m + p - 1));
    }
}

TEST(Timeline, NaiveRunsOneRankAtATime) {
  for (const std::int64_t p : {1, 2, 5})
    for (const std::int64_t m : {1, 3}) {
      const Timeline line = of("naive", p, m, {.forward = 1, .backward_input = 2, .backward_weight = 4});
      EXPECT_EQ(line.makespan, static_cast<double>(7 * p * m));
      EXPECT_DOUBLE_EQ(line.bubble_overhead(), static_cast<double>(p - 1));
    }
}

TEST(Timeline, ActionsStandWhereTheScheduleHasThem) {
  const Timeline line = of("gpipe", 2, 2);
  ASSERT_EQ(line.ranks.size(), 2u);
  const double starts[2][4] = {{0, 1, 5, 7}, {1, 2, 3, 5}};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(line.ranks[rank].size(), 4u);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(line.ranks[rank][k].start, starts[rank][k]);
      EXPECT_EQ(line.ranks[rank][k].end - line.ranks[rank][k].start, k < 2 ? 1 : 2);
    }
  }
}

// W of the last stage runs beside I of the one before.
TEST(Timeline, OnlyTheInputsBackwardIsWaitedFor) {
  const Timeline line = timeline(parse_schedule("0F0,0I0,0W0\n1F0,1I0,1W0"));
  EXPECT_EQ(line.makespan, 5);
  EXPECT_EQ(timeline(parse_schedule("0F0,0B0\n1F0,1B0")).makespan, 6);
}

TEST(Timeline, MessagesAreBetweenRanksAndStagesHaveTheirFactor) {
  const Timeline line = timeline(parse_schedule("0F0,1F0,1B0,0B0\n2F0,2B0"), {.message = 10, .stages = {1, 2, 4}});
  EXPECT_EQ(line.ranks[1][0].start, 3 + 10);                 // 0F0 and 1F0 take 1 and 2, without a message
  EXPECT_EQ(line.ranks[0][2].start, 13 + 12 + 10);           // 2F0 and 2B0 take 4 and 8
  EXPECT_EQ(line.makespan, line.ranks[0][2].start + 4 + 2);  // 1B0 and 0B0, without a message
}

/// 1F1 and 1B0 of rank 1 are a block: F's input is of its own rank and late, B's comes by message and early.
TEST(Timeline, OfABlockOnlyWhatComesByMessageTakesTheMessagesTime) {
  const Schedule schedule = parse_schedule("1F0,0F1,1F1,1B0,1B1,0B1\n0F0,2F0,2B0,2F1,2B1,0B0");
  const double message = 10, slow = 100;
  const ActionCosts costs{.message = message, .stages = {slow, 1, 1}, .overlapped = true};
  const Timeline line = timeline(schedule, costs);
  const double local = line.ranks[0][1].end, remote = line.ranks[1][2].end + message;
  ASSERT_GT(local, remote);
  EXPECT_EQ(line.ranks[0][2].start, local);
}

TEST(Timeline, ABlockIsOfTwoMicrobatches) {
  const Schedule one = parse_schedule("0F0,0B0\n1F0,1B0");
  EXPECT_EQ(timeline(one, {.overlapped = true}).makespan, timeline(one).makespan);
  // 0F1 waits with 0B0 for 1B0, which ends at 4.
  const Schedule two = parse_schedule("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1");
  EXPECT_EQ(timeline(two).ranks[0][1].start, 1);
  EXPECT_EQ(timeline(two, {.overlapped = true}).ranks[0][1].start, 4);
}

/// Each has the F that the other's block needs beside a B that waits for the other's: legal one after the other.
TEST(Timeline, BlocksThatWaitForEachOtherAreRefused) {
  const Schedule schedule = parse_schedule("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1");
  EXPECT_EQ(timeline(schedule).makespan, 9);
  EXPECT_THROW(timeline(schedule, {.overlapped = true}), BadInput);
}

/// Stage 1 is on two ranks, of which one has its gradient at 4, the other at 5; with messages at 14 and 15.
TEST(Timeline, CopiesWaitForEachOtherInTheirUpdates) {
  const Schedule schedule = parse_schedule("0F0,0F1,0B0,0U0,0B1,0U1\n1F0,1B0,1U0\n1F1,1B1,1U1");
  for (const double message : {0, 10}) {
    const Timeline line = timeline(schedule, {.message = message});
    const double late = 5 + message;
    EXPECT_EQ(line.ranks[1][1].end, late - 1);
    EXPECT_EQ(line.ranks[2][1].end, late);
    EXPECT_EQ(line.ranks[1][2].start, late + message);
    EXPECT_EQ(line.ranks[2][2].start, late + message);
    EXPECT_EQ(line.ranks.size(), 3u);
    EXPECT_EQ(line.busy, 12);
  }
}

TEST(Timeline, WhatTakesNoTimeHasNoBubble) {
  EXPECT_EQ(of("gpipe", 4, 1, {0, 0, 0}).bubble_overhead(), 0);
  EXPECT_EQ(of("gpipe", 4, 1, {0, 0, 0}).bubble_fraction(), 0);
}

TEST(Timeline, HasAPicture) {
  EXPECT_EQ(picture(schedule_generator("gpipe").generate({2, 2})),
            "rank 0  F0 F1 .  .  .  B0    B1\n"
            "rank 1  .  F0 F1 B0    B1    .  .\n");
  EXPECT_EQ(picture(parse_schedule("0F0.0,0F0.1,0B0.1,0B0.0")), "rank 0  F0.0 F0.1 B0.1      B0.0\n");
  EXPECT_EQ(picture(parse_schedule("0F10,1F10,1B10,0I10,0W10,0U10\n\n")),
            "rank 0  0F10 1F10 1B10      0I10 0W10\n"
            "rank 1  .    .    .    .    .    .\n");
}

TEST(Timeline, ActionsThatWaitForEachOtherAreRefused) {
  EXPECT_THROW(timeline(parse_schedule("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0")), BadInput);
}

}  // namespace
}  // namespace shardproof::plan
