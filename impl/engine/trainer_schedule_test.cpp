// SPDX-License-Identifier: Apache-2.0
// The trainer on schedules that no generator makes.
#include <gtest/gtest.h>

#include "impl/engine/testing.hpp"
#include "impl/plan/checker.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::engine {
namespace {

/// One step of tiny under this schedule.
void step(const std::string& strategy, const plan::Schedule& schedule, const comm::ThreadsOptions& threads) {
  const auto w = workload::load("tiny", {});
  const workload::Corpus corpus(w);
  auto plan = plan::make_plan(w, plan::parse_strategy(strategy));
  plan.pipeline = plan::Pipeline(schedule);
  comm::run_threads(plan.mesh.ranks(), threads_for(plan, threads), [&](comm::World& world) {
    Device device({.rank = world.rank(), .poison = true});
    ImmediateQueue queue(device);
    Trainer trainer(queue, world, w, Track::exact, plan);
    trainer.step(workload::batch(w, corpus, 1));
  });
}

TEST(Trainer, AMicrobatchWithoutItsLastActionIsAnError) {
  step("dp1 microbatches=2", plan::parse_schedule("0F0,0I0,0F1,0I1,0W1,0W0"), {});
  try {
    step("dp1 microbatches=2", plan::parse_schedule("0F0,0I0,0F1,0I1,0W1"), {});
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "rank 0: stage 0: microbatch 0 has not run all of its actions");
  }
}

TEST(Trainer, SendsAreOfTheDepthThatTheScheduleNeeds) {
  // The textbook order of 1F1B: with sends that rendezvous, both ranks wait in a send after their second action.
  auto schedule = plan::parse_schedule("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_FALSE(plan::findings(schedule, 2, 2).empty());
  schedule.send_depth = 1;
  EXPECT_TRUE(plan::findings(schedule, 2, 2).empty());
  step("pp2 schedule=gpipe microbatches=2", schedule, {.timeout_seconds = 20, .send_depth = 0});
  auto plan = plan::make_plan(workload::load("tiny", {}), plan::parse_strategy("pp2"));
  plan.pipeline = plan::Pipeline(schedule);
  EXPECT_EQ(threads_for(plan, {.send_depth = 0}).send_depth, 1);
  EXPECT_EQ(threads_for(plan, {.send_depth = 3}).send_depth, 3);
}

}  // namespace
}  // namespace shardproof::engine
