// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_index.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

TEST(ScheduleIndex, TheExtentHoldsEveryAction) {
  const ScheduleExtent extent = extent_of(parse_schedule("0F0,2I5\n1F7.3"));
  EXPECT_EQ(extent.stages, 3);
  EXPECT_EQ(extent.microbatches, 8);
  EXPECT_EQ(extent.slices, 4);
  EXPECT_EQ(extent.units(), 3 * 8 * 4);
  EXPECT_EQ(extent_of(Schedule{{{{0, forward, 0}, {0, update, 0, 3}}}}).slices, 0) << "an update has none";
  EXPECT_EQ(extent_of(Schedule{}).units(), 0);
}

TEST(ScheduleIndex, UnitsEndWhereTheirNumberDoes) {
  const std::int64_t n = std::int64_t{1} << 31, greatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((ScheduleExtent{n, n, 0}.units()), n * n);
  EXPECT_EQ((ScheduleExtent{n, n, 4}.units()), greatest);
  EXPECT_EQ((ScheduleExtent{greatest, 2, 0}.units()), greatest);
}

TEST(ScheduleIndex, KnowsWhatAShapeHolds) {
  const ScheduleExtent whole = extent_of(ScheduleShape{.ranks = 4, .microbatches = 3, .chunks = 2});
  EXPECT_EQ(whole.stages, 8);
  EXPECT_EQ(whole.microbatches, 3);
  EXPECT_EQ(whole.slices, 0);
  EXPECT_EQ(extent_of(ScheduleShape{.ranks = 4, .slices = 2}).slices, 2);
  EXPECT_EQ(extent_of(ScheduleShape{.ranks = 4, .replicas = {3, 1}}).stages, 2);
}

TEST(ScheduleIndex, NeighboursAreOverTheStagesOrder) {
  const Schedule schedule = parse_schedule("0F0,0B0\n1F0,1I0,1W0\n2F0,2B0,2U0");
  const ScheduleIndex index(schedule, extent_of(schedule));
  EXPECT_EQ(index.source({0, forward, 0}), std::nullopt);
  EXPECT_EQ(index.source({1, forward, 0}), (ActionPlace{0, 0}));
  EXPECT_EQ(index.target({1, forward, 0}), (ActionPlace{2, 0}));
  EXPECT_EQ(index.target({2, forward, 0}), std::nullopt);
  EXPECT_EQ(index.source({2, backward, 0}), std::nullopt);
  EXPECT_EQ(index.source({1, backward_input, 0}), (ActionPlace{2, 1}));
  EXPECT_EQ(index.target({1, backward_input, 0}), (ActionPlace{0, 1}));
  EXPECT_EQ(index.target({0, backward, 0}), std::nullopt);
  for (const ActionKind kind : {backward_weight, update}) {
    EXPECT_EQ(index.source({1, kind, 0}), std::nullopt);
    EXPECT_EQ(index.target({1, kind, 0}), std::nullopt);
  }
  EXPECT_EQ(index.place(index.unit({1, forward, 0}), backward_weight), (ActionPlace{1, 2}));
  EXPECT_EQ(index.place(index.unit({2, forward, 0}), backward_weight), (ActionPlace{2, 1}));
}

}  // namespace
}  // namespace shardproof::plan
