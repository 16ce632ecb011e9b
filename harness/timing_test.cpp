// SPDX-License-Identifier: Apache-2.0
#include "harness/timing.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

Record timed(const std::string& strategy, std::int64_t steps, std::int64_t processors) {
  TrainingJob job{.workload = workload::load("tiny", std::vector<std::string>{"steps=" + std::to_string(steps)}),
                  .track = Track::native,
                  .strategy = plan::parse_strategy(strategy),
                  .record_spans = true};
  const Trained trained = train(job, workload::Corpus(job.workload), {});
  Record record;
  add_timing(job, trained, {.fabric = {}, .processors = processors}, record);
  return record;
}

TEST(Timing, AccountsForAllOfTheTime) {
  for (const char* strategy : {"dp1", "dp2 pp2 tp2 schedule=gpipe microbatches=3"}) {
    const Record record = timed(strategy, 4, 8);
    double sum = 0;
    for (const char* lane : {"compute", "copy", "communication", "wait", "host"}) {
      const double share = figure_of(record, std::string("time_") + lane + "_share");
      EXPECT_GE(share, 0) << lane;
      sum += share;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_GT(figure_of(record, "time_compute_share"), 0);
    EXPECT_GT(figure_of(record, "step_seconds_median"), 0);
    EXPECT_GT(figure_of(record, "tokens_per_second_replay_median"), 0);
  }
}

// Between the steps of the replay nothing is left out: with costs from the wall, one rank's replay is the wall.
TEST(Timing, TheReplayOfOneRankIsItsWall) {
  const Record record = timed("microbatches=2", 6, 1);
  EXPECT_NEAR(figure_of(record, "replay_over_wall"), 1, 1e-6);
  EXPECT_EQ(figure_of(record, "replay_processor_time"), 0);
  EXPECT_TRUE(std::isnan(figure_of(record, "bubble_formula_fraction")));
}

TEST(Timing, BubblesOfAPipelineAreOfThreeKinds) {
  const Record record = timed("pp2 schedule=gpipe microbatches=4", 4, 2);
  EXPECT_DOUBLE_EQ(figure_of(record, "bubble_formula_fraction"), 0.2);
  EXPECT_DOUBLE_EQ(figure_of(record, "bubble_formula_overhead"), 0.25);
  for (const char* kind : {"replay", "wall"}) {
    const double fraction = figure_of(record, std::string("bubble_") + kind + "_fraction");
    EXPECT_GT(fraction, 0) << kind;
    EXPECT_LT(fraction, 1) << kind;
  }
}

TEST(Timing, WithFewerProcessorsThanRanksTheWallHasNoBubble) {
  const Record record = timed("pp2 schedule=gpipe microbatches=4", 4, 1);
  EXPECT_EQ(figure_of(record, "replay_processor_time"), 1);
  EXPECT_TRUE(std::isnan(figure_of(record, "bubble_wall_fraction")));
  EXPECT_GT(figure_of(record, "bubble_replay_fraction"), 0);
}

TEST(Timing, ASingleStepIsNotTimed) { EXPECT_TRUE(timed("dp1", 1, 1).figures.empty()); }

}  // namespace
}  // namespace shardproof::harness
