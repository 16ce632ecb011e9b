// SPDX-License-Identifier: Apache-2.0
// A program whose stages add their number: what comes out at the ends shows what passed through where.
#include "impl/pipeline_parallel/executor.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "impl/comm/world.hpp"
#include "impl/plan/checker.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::pipeline_parallel {
namespace {

using plan::Action;

class Adder final : public step::StageProgram {
 public:
  Adder(Queue& queue, std::int64_t stages) : queue_(queue), stages_(stages) {}

  Tensor forward(std::int64_t stage, std::int64_t microbatch, Tensor input) override {
    const double x = (stage == 0 ? 100.0 * static_cast<double>(microbatch) : value(input)) + static_cast<double>(stage);
    if (stage == stages_ - 1) {
      out.push_back(x);
      return {};
    }
    return made(x);
  }
  Tensor backward_input(std::int64_t stage, std::int64_t microbatch, Tensor gradient) override {
    const double x = (stage == stages_ - 1 ? 1000.0 * static_cast<double>(microbatch) : value(gradient)) +
                     static_cast<double>(stage);
    if (stage > 0) return made(x);
    out.push_back(x);
    return {};
  }
  void backward_weight(std::int64_t, std::int64_t) override { ++weights; }
  void update(std::int64_t stage, std::int64_t microbatch) override { updates.push_back({stage, microbatch}); }
  Tensor backward(std::int64_t stage, std::int64_t microbatch, Tensor gradient) override {
    backward_weight(stage, microbatch);
    return backward_input(stage, microbatch, std::move(gradient));
  }
  Tensor boundary(std::int64_t) override { return {queue_, {"boundary", Dtype::f64, {1}, Category::activation}}; }

  std::vector<double> out;
  int weights = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> updates;

 private:
  double value(const Tensor& t) { return fetch<double>(queue_, t)[0]; }
  Tensor made(double x) {
    Tensor t = boundary(0);
    upload<double>(queue_, t, std::vector{x});
    return t;
  }
  Queue& queue_;
  std::int64_t stages_;
};

/// What comes out at the last stage and at the first, by rank.
std::vector<std::vector<double>> run(const plan::Schedule& schedule, std::int64_t stages, std::int64_t send_depth) {
  const auto ranks = std::ssize(schedule.ranks);
  std::vector<std::vector<double>> out(schedule.ranks.size());
  const plan::Placement placement(schedule);
  comm::run_threads(ranks, {.send_depth = send_depth}, [&](comm::World& world) {
    Device device({.rank = world.rank()});
    ImmediateQueue queue(device);
    Adder program(queue, stages);
    Executor executor(queue, world.all("forward"), world.all("backward"), placement);
    std::size_t done = 0;
    const auto& actions = schedule.ranks[static_cast<std::size_t>(world.rank())];
    executor.run(actions, program, [&](const Action& action) { EXPECT_EQ(action, actions[done++]); });
    executor.end();
    EXPECT_EQ(done, actions.size());
    for (const auto& action : actions)
      EXPECT_EQ(std::ranges::count(program.updates, std::pair{action.stage, action.microbatch}),
                action.kind == plan::ActionKind::update
                    ? 1
                    : std::ranges::count(actions, Action{action.stage, plan::ActionKind::update, action.microbatch}));
    out[static_cast<std::size_t>(world.rank())] = program.out;
  });
  return out;
}

TEST(Executor, EveryMicrobatchPassesEveryStageBothWays) {
  for (const std::string name : {"naive", "gpipe"}) {
    for (const std::int64_t ranks : {1, 2, 3, 5}) {
      for (const std::int64_t depth : {0, 1}) {
        const auto schedule = plan::schedule_generator(name).generate({.ranks = ranks, .microbatches = 3});
        const auto out = run(schedule, ranks, depth);
        const std::int64_t pairs = ranks * (ranks - 1) / 2;
        const auto sum = static_cast<double>(pairs);
        auto ends = out.front();
        if (ranks > 1) ends.insert(ends.end(), out.back().begin(), out.back().end());
        std::ranges::sort(ends);
        const std::vector<double> expected{sum, sum, 100 + sum, 200 + sum, 1000 + sum, 2000 + sum};
        EXPECT_EQ(ends, expected) << name << " " << ranks;
      }
    }
  }
}

TEST(Executor, StagesOfOneRankHandOver) {
  // Four stages on two ranks, dealt out in turn, I and W apart.
  const auto schedule = plan::parse_schedule("0F0,2F0,2I0,0I0,0W0,2W0\n1F0,3F0,3I0,3W0,1I0,1W0\n");
  ASSERT_TRUE(plan::findings(schedule, 4, 1).empty());
  const auto out = run(schedule, 4, 0);
  EXPECT_EQ(out[0], std::vector{6.0});
  EXPECT_EQ(out[1], std::vector{6.0});
}

TEST(Executor, WhatIsHandedOverAndNotTakenIsAnError) {
  try {
    run(plan::parse_schedule("0F0,1F0,1B0\n"), 2, 0);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "rank 0: pipeline: stage 0 has not taken what it was handed of microbatch 0");
  }
}

TEST(Executor, WhatGoesForwardDoesNotWaitBehindWhatGoesBack) {
  // Two chunks a rank: between two ranks both ways are in use at once.
  auto schedule = plan::parse_schedule("0F0,2F0,0F1,2F1,2B0,0B0,2B1,0B1\n1F0,3F0,3B0,1F1,3F1,1B0,3B1,1B1\n");
  for (const std::int64_t depth : {1, 2}) {
    schedule.send_depth = depth;
    ASSERT_TRUE(plan::findings(schedule, 4, 2).empty());
    const auto out = run(schedule, 4, depth);
    EXPECT_EQ(out[0], (std::vector{6.0, 1006.0}));
    EXPECT_EQ(out[1], (std::vector{6.0, 106.0}));
  }
}

TEST(Executor, MessagesThatAreTakenInAnotherOrderAreNoPair) {
  const auto schedule = plan::parse_schedule("0F0,0F1\n1F1,1F0\n");
  try {
    run(schedule, 2, 1);
    FAIL();
  } catch (const CommError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 0 calls send 1 f64 (1) for stage_output, stage 1, microbatch 0, rank 1 calls receive 1 "
                        "f64 (1) for stage_output, stage 1, microbatch 1: they differ in microbatch"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace shardproof::pipeline_parallel
