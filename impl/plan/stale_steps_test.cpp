// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/stale_steps.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"
#include "impl/plan/placement.hpp"
#include "impl/plan/schedule_messages.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

using Counts = std::vector<std::int64_t>;
using ByStep = std::vector<std::vector<std::size_t>>;

ByStep cut(const Schedule& schedule, std::int64_t parts = 1) {
  return actions_by_step(schedule, {schedule, extent_of(schedule)}, parts);
}

/// Every rank reaches the end of every step with nothing run behind it; an update belongs to the step of the last
/// microbatch that it is of, a loss to that of its own.
void expect_steps_stand_alone(const Schedule& schedule, const ByStep& by_step, std::int64_t parts) {
  const ScheduleIndex index(schedule, extent_of(schedule));
  const Placement placement(schedule);
  const auto step_of = [&](std::size_t rank, std::size_t at) {
    std::int64_t step = 1;
    while (by_step[rank][static_cast<std::size_t>(step - 1)] <= at) ++step;
    return step;
  };
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    ASSERT_EQ(by_step[rank].back(), schedule.ranks[rank].size());
    for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
      const Action& a = schedule.ranks[rank][at];
      if (a.kind == ActionKind::forward && a.stage + 1 == placement.stages()) {
        EXPECT_LE(step_of(rank, at), a.microbatch / parts + 1) << print(a);
      }
      if (a.kind != ActionKind::update) continue;
      const std::int64_t copies = std::ssize(placement.ranks_of(a.stage));
      const std::int64_t last = parts > 1 ? a.microbatch / parts + 1 : (a.microbatch / copies + 1) * copies;
      EXPECT_EQ(step_of(rank, at), last) << print(a);
    }
  }
  for (const std::size_t step : {0, 1, 2, 3, 4, 5, 6, 7, 29}) {
    Schedule so_far = schedule;
    for (std::size_t rank = 0; rank < by_step.size(); ++rank)
      so_far.ranks[rank].resize(by_step[rank][std::min(step, by_step[rank].size() - 1)]);
    const auto blocked = deadlock(so_far, index);
    EXPECT_FALSE(blocked) << "step " << step + 1 << blocked->text;
  }
}

TEST(StaleSteps, GoFromUpdateToUpdate) {
  const Schedule schedule = generate(schedule_generator("pipedream"), {.ranks = 3, .microbatches = 6});
  // Two forwards ahead, then F, B, U; the last two without an F.
  EXPECT_EQ(cut(schedule), (ByStep{{5, 8, 11, 14, 16, 18}, {4, 7, 10, 13, 16, 18}, {3, 6, 9, 12, 15, 18}}));
}

TEST(StaleSteps, RanksThatTakeTurnsUpdateAtTheEndOfTheirTurn) {
  const Schedule schedule =
      generate(schedule_generator("pipedream"), {.ranks = 4, .microbatches = 4, .replicas = {2, 1, 1}});
  EXPECT_EQ(print(schedule),
            "0F0,0F2,0B0,0U0,0B2,0U2\n0F1,0F3,0B1,0U1,0B3,0U3\n1F0,1F1,1B0,1U0,1F2,1B1,1U1,1F3,1B2,1U2,1B3,1U3\n"
            "2F0,2B0,2U0,2F1,2B1,2U1,2F2,2B2,2U2,2F3,2B3,2U3\n");
  // Rank 0 has its backward of the first step only in the second; rank 1 goes forward in the first, though it has no
  // part in it: stage 1 is to go forward with its second minibatch before it goes back with the first.
  EXPECT_EQ(cut(schedule), (ByStep{{1, 4, 4, 6}, {1, 4, 4, 6}, {4, 7, 10, 12}, {3, 6, 9, 12}}));
}

TEST(StaleSteps, OfTwoBufferedVersionsAreOfSeveralMicrobatches) {
  const Schedule schedule =
      generate(schedule_generator("pipedream_2bw"), {.ranks = 2, .microbatches = 6, .microbatches_per_update = 3});
  const ByStep steps = cut(schedule, 3);
  for (const auto& rank : steps) EXPECT_EQ(rank.size(), 2u);
  expect_steps_stand_alone(schedule, steps, 3);
}

// All lists of replicas on up to seven ranks, with both rules.
TEST(StaleSteps, StandAloneWhateverTheReplicas) {
  std::vector<Counts> lists = {{}};
  int cut_up = 0;
  for (std::size_t k = 0; k < lists.size(); ++k) {
    const Counts list = lists[k];
    const std::int64_t sum = std::accumulate(list.begin(), list.end(), std::int64_t{0});
    for (std::int64_t r = 1; r <= 7 - sum && list.size() < 4; ++r) lists.push_back(list), lists.back().push_back(r);
    for (const bool sync : {false, true}) {
      const ScheduleShape shape{.ranks = sum, .microbatches = 60, .replicas = list, .vertical_sync = sync};
      if (list.empty() || !schedule_generator("pipedream").refusal(shape).empty()) continue;
      const Schedule schedule = generate(schedule_generator("pipedream"), shape);
      SCOPED_TRACE(print(schedule));
      expect_steps_stand_alone(schedule, cut(schedule), 1);
      ++cut_up;
    }
  }
  EXPECT_GT(cut_up, 100);
}

// Between an update and the end of its step its gradients are observed: nothing may be added to them.
TEST(StaleSteps, BackwardsOfAnotherUpdateInTheSameStepAreRefused) {
  Schedule schedule = parse_schedule("0F0,0F1,0B0,0U0,0B1,0U1,0F2,0B2,0U2\n1F0,1F1,1B0,1U0,1B1,1U1,1F2,1B2,1U2\n");
  schedule.weights = WeightRule::stashed;
  EXPECT_EQ(cut(schedule)[0], (std::vector<std::size_t>{4, 6, 9}));
  schedule = parse_schedule("0F0,0B0,0U0,0F1,0B1,0U1\n1F0,1B0,1U0,1F1,1B1,1U1\n");
  schedule.weights = WeightRule::double_buffered;
  EXPECT_THROW(cut(schedule, 2), NotSupported);
}

// Of a proven schedule: rank 0 goes on to 0B0 once 1F2 has received what it sent, which stands behind 1U1.
TEST(StaleSteps, UpdatesBeforeTheirStepAreRefused) {
  Schedule schedule = parse_schedule(
      "0F0,0F1,0F2,0F3,0F4,0B0,0U0,0B1,0U1,0B2,0U2,0B3,0U3,0B4,0U4\n"
      "1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2,1F3,1B3,1U3,1F4,1B4,1U4\n");
  schedule.weights = WeightRule::stashed;
  schedule.send_depth = 2;
  ASSERT_EQ(findings(schedule, 2, 5), std::vector<std::string>{});
  try {
    cut(schedule);
    ADD_FAILURE() << "it was cut";
  } catch (const NotSupported& error) {
    EXPECT_STREQ(
        error.what(),
        "schedule: 1U1 would have to run in step 1, for what this step needs of rank 1 stands behind it: it is "
        "the update of step 2");
  }
  schedule.send_depth = 4;
  EXPECT_EQ(cut(schedule)[1].front(), 3u);
}

}  // namespace
}  // namespace shardproof::plan
