// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/placement.hpp"

#include <gtest/gtest.h>

#include "impl/plan/plan.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

using Ranks = std::vector<std::int64_t>;

Plan plan_of(const std::string& strategy, const std::vector<std::string>& settings = {"layers=8"}) {
  return make_plan(workload::load("tiny", settings), parse_strategy(strategy));
}

TEST(Placement, ChunksAreDealtOutInTurn) {
  const Placement p = plan_of("pp3 schedule=interleaved chunks=2 microbatches=4").pipeline.placement;
  ASSERT_EQ(p.stages(), 6);
  for (std::int64_t stage = 0; stage < 6; ++stage) {
    EXPECT_EQ(p.ranks_of(stage), Ranks{stage % 3});
    EXPECT_EQ(p.rank_of(stage, 3), stage % 3);
  }
  EXPECT_EQ(p.stages_of(1), (Ranks{1, 4}));
}

TEST(Placement, TheEndsOfAVMeetOnItsFirstRank) {
  const Placement p = plan_of("pp3 schedule=zb_v microbatches=2").pipeline.placement;
  ASSERT_EQ(p.stages(), 6);
  EXPECT_EQ(p.stages_of(0), (Ranks{0, 5}));
  EXPECT_EQ(p.stages_of(2), (Ranks{2, 3}));
}

TEST(Placement, MirrorsHoldEachStageTwiceAndShareTheMicrobatches) {
  const Placement p = plan_of("pp4 schedule=dualpipe microbatches=8").pipeline.placement;
  ASSERT_EQ(p.stages(), 4);
  EXPECT_EQ(p.ranks_of(1), (Ranks{1, 2}));
  EXPECT_EQ(p.stages_of(3), (Ranks{0, 3}));
  EXPECT_EQ(p.rank_of(0, 3), 0);
  EXPECT_EQ(p.rank_of(0, 4), 3);
}

TEST(Placement, AMicrobatchThatNobodyRunsHasNoRank) {
  const Placement p(parse_schedule("0F0,0B0\n1F0,1F1\n"));
  EXPECT_EQ(p.rank_of(1, 1), 1);
  EXPECT_THROW(p.rank_of(0, 1), InternalError);
}

TEST(Plan, HoldersOfAParameterAreThoseOfItsStagesEachOnce) {
  const auto holders = [](const std::string& strategy, const std::string& name) {
    const Plan plan = plan_of(strategy, {"layers=8", "tied_head=true", "shared_block=1,6"});
    return plan.holders(plan.layout[name]);
  };
  EXPECT_EQ(holders("pp4", "token_embedding.weight"), (Ranks{0, 3}));
  EXPECT_EQ(holders("pp4 schedule=zb_v", "token_embedding.weight"), Ranks{0});
  EXPECT_EQ(holders("pp4 schedule=dualpipe microbatches=8", "token_embedding.weight"), (Ranks{0, 3}));
  EXPECT_EQ(holders("pp4 schedule=dualpipe microbatches=8", "blocks.2.norm1.bias"), (Ranks{1, 2}));
  EXPECT_EQ(holders("pp4 schedule=interleaved", "blocks.1.norm1.bias"), (Ranks{1, 2}));
  EXPECT_EQ(holders("pp2 schedule=interleaved chunks=4", "blocks.1.norm1.bias"), (Ranks{1, 0}));
}

TEST(Plan, ThePrimaryHolderIsTheFirst) {
  const Plan plan = plan_of("dp2 pp2 schedule=interleaved chunks=4", {"layers=8", "shared_block=1,6"});
  const auto& shared = plan.layout["blocks.1.norm1.bias"];
  const Rank primary = primary_holder(plan, shared, 0);
  for (std::int32_t r = 0; r < 4; ++r)
    EXPECT_EQ(is_primary(plan, shared, place_of(plan.mesh, Rank{r})), Rank{r} == primary) << r;
  EXPECT_EQ(place_of(plan.mesh, primary).pp, 1);
}

}  // namespace
}  // namespace shardproof::plan
