// SPDX-License-Identifier: Apache-2.0
#include "harness/timing.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "harness/predict/bubble.hpp"

namespace shardproof::harness {
namespace {

Record timed(const std::string& strategy, std::int64_t steps, std::int64_t processors) {
  TrainingJob job{
      .workload = {}, .track = Track::native, .strategy = plan::parse_strategy(strategy), .record_spans = true};
  std::vector<std::string> settings = {"steps=" + std::to_string(steps)};
  if (plan::contract(job.strategy, job.track) == "STALE")
    settings.insert(settings.end(), {"tied_head=false", "layers=4"});
  job.workload = plan::with_program_keys(workload::load("tiny", settings), job.strategy);
  const Trained trained = train(job, workload::Corpus(job.workload), {});
  Record record;
  add_timing(job, trained, processors, record);
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

// The costs of every stage are those that the form was made of, and the replay is nowhere below them.
TEST(Timing, TheMakespanOfGpipeIsOfThreeKinds) {
  for (const std::int64_t processors : {3, 1}) {
    const Record record = timed("pp3 schedule=gpipe microbatches=4", 2, processors);
    std::vector<predict::StageSeconds> stages;
    for (const std::string s : {"0", "1", "2"}) {
      const auto of = [&](const char* way) { return figure_of(record, "pipeline_stage" + s + way + "_seconds"); };
      stages.push_back({of("_forward"), of("_backward")});
      EXPECT_GT(stages.back().forward, 0);
      EXPECT_GT(stages.back().backward, 0);
    }
    const double form = figure_of(record, "pipeline_formula_seconds");
    EXPECT_NEAR(form, predict::gpipe_seconds(stages, 4), 1e-9 * form);
    double busiest = 0;
    for (const auto& stage : stages) busiest = std::max(busiest, 4 * (stage.forward + stage.backward));
    EXPECT_GE(figure_of(record, "pipeline_replay_seconds"), busiest);
    EXPECT_EQ(std::isnan(figure_of(record, "pipeline_wall_seconds")), processors == 1);
  }
  EXPECT_TRUE(std::isnan(figure_of(timed("dp2 pp2 schedule=gpipe", 2, 4), "pipeline_formula_seconds")));
  EXPECT_TRUE(std::isnan(figure_of(timed("pp2", 2, 2), "pipeline_formula_seconds")));
}

TEST(Timing, WithFewerProcessorsThanRanksTheWallHasNoBubble) {
  const Record record = timed("pp2 schedule=gpipe microbatches=4", 4, 1);
  EXPECT_EQ(figure_of(record, "replay_processor_time"), 1);
  EXPECT_TRUE(std::isnan(figure_of(record, "bubble_wall_fraction")));
  EXPECT_GT(figure_of(record, "bubble_replay_fraction"), 0);
}

// Steps of different ranks overlap: what idle time there is comes from unequal stages alone.
TEST(Timing, WithoutAFlushBubblesAreOfTheSteadyState) {
  for (const auto& [strategy, processors] : {std::pair("pp2 schedule=pipedream", 2),
                                             {"pp2 schedule=pipedream_2bw microbatches=3", 1},
                                             {"pp2 schedule=pipedream replicas=2,1", 3},
                                             {"dp2 pp2 tp2 schedule=pipedream", 8}}) {
    const Record record = timed(strategy, 16, processors);
    for (const std::string kind : {"replay", "wall"}) {
      const double fraction = figure_of(record, "bubble_" + kind + "_fraction");
      const bool measured = kind == "replay" || processors > 1;
      EXPECT_EQ(std::isnan(fraction), !measured) << strategy << " " << kind;
      if (!measured) continue;
      EXPECT_GE(fraction, 0) << strategy << " " << kind;
      EXPECT_LT(fraction, 1) << strategy << " " << kind;
      EXPECT_GE(figure_of(record, "bubble_" + kind + "_steady_steps"), 3) << strategy << " " << kind;
      EXPECT_GT(figure_of(record, "pipeline_" + kind + "_seconds"), 0) << strategy << " " << kind;
    }
    double sum = 0;
    for (const char* lane : {"compute", "copy", "communication", "wait", "host"})
      sum += figure_of(record, std::string("time_") + lane + "_share");
    EXPECT_NEAR(sum, 1, 1e-9) << strategy;
  }
  const Record few = timed("pp2 schedule=pipedream", 2, 2);
  EXPECT_FALSE(few.figures.empty());
  EXPECT_TRUE(std::isnan(figure_of(few, "bubble_replay_fraction"))) << "of one step";
}

TEST(Timing, ASingleStepIsNotTimed) { EXPECT_TRUE(timed("dp1", 1, 1).figures.empty()); }

}  // namespace
}  // namespace shardproof::harness
