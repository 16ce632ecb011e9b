// SPDX-License-Identifier: Apache-2.0
// The trainer on schedules that no generator makes.
#include <gtest/gtest.h>

#include "impl/engine/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::engine {
namespace {

/// One step of tiny under this schedule.
void step(const std::string& strategy, const plan::Schedule& schedule, const comm::ThreadsOptions& threads) {
  const auto w = workload::load("tiny", {});
  const workload::Corpus corpus(w);
  auto plan = plan::make_plan(w, plan::parse_strategy(strategy));
  plan.schedule = schedule;
  comm::run_threads(plan.mesh.ranks(), threads, [&](comm::World& world) {
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

}  // namespace
}  // namespace shardproof::engine
