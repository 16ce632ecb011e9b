// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_rules.hpp"

#include <gtest/gtest.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

TEST(ScheduleRules, WhatIsNotUsedMustBeAsByDefault) {
  const ScheduleShape shape{
      .chunks = 3, .slices = 2, .microbatches_per_update = 4, .replicas = {1}, .vertical_sync = true};
  EXPECT_EQ(unused_shape(shape, {}), "chunks 3: a rank holds 1 stage");
  EXPECT_EQ(unused_shape(shape, {}, 2), "chunks 3: a rank holds 2 stages");
  EXPECT_EQ(unused_shape(shape, {}, 3), "slices 2: it takes whole sequences, slices 1");
  EXPECT_EQ(unused_shape(shape, {.chunks = true, .slices = true}),
            "microbatches per update 4: it has no updates but at the end");
  EXPECT_EQ(unused_shape(shape, {.chunks = true, .slices = true, .updates = true}),
            "replicas 1: a stage is on one rank but in pipedream");
  EXPECT_EQ(unused_shape({.vertical_sync = true}, {}), "vertical sync on: it is of pipedream alone, off");
  EXPECT_EQ(unused_shape(shape, {.chunks = true, .slices = true, .updates = true, .replicas = true}), "");
  EXPECT_EQ(unused_shape({}, {}), "");
}

TEST(ScheduleRules, SlicesGoForwardsAndBackwardsInTime) {
  const auto of = [](const ScheduleShape& shape) {
    std::vector<Action> actions;
    for (const ActionKind kind : {forward, backward_input, backward_weight}) append(actions, shape, {2, kind, 5});
    return print(Schedule{{actions}});
  };
  EXPECT_EQ(of({}), "2F5,2I5,2W5\n");
  EXPECT_EQ(of({.slices = 2}), "2F5.0,2F5.1,2I5.1,2I5.0,2W5.1,2W5.0\n");
}

}  // namespace
}  // namespace shardproof::plan
