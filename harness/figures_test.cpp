// SPDX-License-Identifier: Apache-2.0
#include "harness/figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "harness/budget.hpp"
#include "harness/predict/memory.hpp"
#include "harness/predict/ranks.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

engine::StepResult step(std::int64_t tokens, std::optional<double> loss) {
  engine::StepResult result;
  result.step = 1;
  result.tokens = tokens;
  result.loss = loss;
  result.skipped = loss ? engine::Skipped::no : engine::Skipped::no_label;
  return result;
}

TEST(Quartiles, LieBetweenOrderStatistics) {
  EXPECT_EQ(quartiles({7}), (std::array<double, 3>{7, 7, 7}));
  EXPECT_EQ(quartiles({4, 2}), (std::array<double, 3>{2.5, 3, 3.5}));
  EXPECT_EQ(quartiles({5, 1, 4, 2, 3}), (std::array<double, 3>{2, 3, 4}));
}

TEST(Throughput, LeavesOutTheFirstStepAndSkippedOnes) {
  Trained trained{.steps = {step(100, 1.0), step(100, 1.0), step(0, {}), step(300, 1.0)},
                  .seconds = {1000, 2, 0.001, 3},
                  .ledgers = {},
                  .forms = {}};
  EXPECT_EQ(tokens_per_second({}, trained)->at(1), 75);
  trained.steps.resize(1);
  EXPECT_FALSE(tokens_per_second({}, trained));
}

TEST(Throughput, IsOfTheStepsThatAreReplayed) {
  const Trained trained{.steps = std::vector(1 + most_recorded_steps, step(100, 1.0)),
                        .seconds = std::vector(1 + most_recorded_steps, 2.0),
                        .ledgers = {},
                        .forms = {}};
  Trained longer = trained;
  for (int k = 0; k < 100; ++k) longer.steps.push_back(step(100, 1.0)), longer.seconds.push_back(1.0);
  EXPECT_EQ(tokens_per_second({}, longer), tokens_per_second({}, trained));
}

TEST(Throughput, IsOfWholeTurnsWhereRank0HasNotEveryStep) {
  workload::Workload w = workload::load("tiny");
  w.stale = {.rule = workload::StaleProgram::Rule::stashed, .replicas = {2, 1}};
  Trained trained{.steps = std::vector(6, step(100, 1.0)),
                  .seconds = {1000, 0.001, 3, 1, 1, 0.25},  // warms up; 200 tokens in 4 seconds; in 1.25
                  .ledgers = {},
                  .forms = {}};
  trained.steps[5] = step(0, {});  // took its time without a label
  EXPECT_EQ(*tokens_per_second(w, trained), quartiles({50, 80}));
  trained.steps.resize(2);
  EXPECT_FALSE(tokens_per_second(w, trained));
  // One turn is more than the steps that are recorded.
  w.stale.replicas = {most_recorded_steps + 2};
  trained.steps = std::vector(2 * (most_recorded_steps + 2), step(10, 1.0));
  trained.seconds = std::vector(trained.steps.size(), 2.0);
  EXPECT_EQ(tokens_per_second(w, trained)->at(1), 5);
}

TEST(Learning, IsTheMeanOverTheTokensOfTheLastHundredSteps) {
  workload::Workload w = workload::load("tiny");
  w.corpus = "markov";
  std::vector<engine::StepResult> steps(50, step(7, 9.0));
  for (int i = 0; i < 99; ++i) steps.push_back(step(10, 2.0));
  steps.push_back(step(0, {}));
  steps.push_back(step(30, 1.0));
  const auto found = learning(w, steps);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first_loss, 9);
  EXPECT_EQ(found->last_loss, 1);
  EXPECT_EQ(found->steps, 100);
  EXPECT_EQ(found->tokens, 1020);
  EXPECT_NEAR(found->mean, (99 * 10 * 2.0 + 30) / 1020, 1e-12);  // 100 additions of numbers below 2000 in double
  const workload::MarkovSource source = workload::markov_source(w);
  EXPECT_EQ(found->floor, source.entropy);
  EXPECT_EQ(found->standard_error, std::sqrt(source.variance / 1020));
}

TEST(Learning, AMeanBelowTheFloorCheats) {
  workload::Workload w = workload::load("tiny");
  w.corpus = "markov";
  const double floor = workload::markov_source(w).entropy;
  const auto cheats = [&](double loss) { return learning(w, std::vector{step(1'000'000, loss)})->cheats(); };
  EXPECT_FALSE(cheats(floor));
  EXPECT_FALSE(cheats(floor + 1));
  const double error = std::sqrt(workload::markov_source(w).variance / 1e6);
  EXPECT_FALSE(cheats(floor - 3.9 * error));
  EXPECT_TRUE(cheats(floor - 4.1 * error));
  // Of few labels the model may guess all: 4 of them say nothing, however sure it was.
  EXPECT_FALSE(learning(w, std::vector{step(4, 0.0)})->cheats());
  EXPECT_TRUE(learning(w, std::vector{step(1000, 0.0)})->cheats());
  w.samples = 4;  // can be learnt by heart
  EXPECT_FALSE(cheats(0));
}

TEST(Learning, ThereIsNoneWithoutALoss) {
  EXPECT_FALSE(learning(workload::load("tiny"), {}));
  EXPECT_FALSE(learning(workload::load("tiny"), std::vector{step(0, {})}));
}

TrainingJob job(const char* name, Track track, const std::vector<std::string>& settings = {}) {
  return {.workload = workload::load(name, settings), .track = track};
}

TEST(Budget, TheJudgedPartIsCutToTheTimeAllowed) {
  TrainingJob tiny = job("tiny", Track::exact);
  tiny.workload.steps = 10;
  const JudgedPart whole = judged_part(tiny);
  EXPECT_TRUE(whole.full());
  EXPECT_EQ(whole.steps, 3);
  EXPECT_EQ(whole.job.workload.batch, tiny.workload.batch);

  tiny.workload.batch = 9;
  const double two_samples = oracle_seconds(tiny.workload, tiny.track, 2, 3);
  const JudgedPart fewer = judged_part(tiny, two_samples * 1.01);
  EXPECT_EQ(fewer.text, "batch=2 (of 9), 3 steps");
  EXPECT_EQ(fewer.job.workload.batch, 2);
  EXPECT_EQ(fewer.job.workload.steps, 3);
  const JudgedPart least = judged_part(tiny, two_samples * 0.99);
  EXPECT_EQ(least.text, "batch=2 (of 9), 1 step");
  EXPECT_EQ(least.steps, 1);

  tiny.strategy.microbatches = 4;
  EXPECT_EQ(judged_part(tiny, 0).job.workload.batch, 4);
  tiny.workload.steps = 2;
  EXPECT_EQ(judged_part(tiny).steps, 2);
}

TEST(Budget, ALargeBatchOfASmallDataSetIsThatDataSet) {
  TrainingJob small = job("tiny", Track::exact), large = small;
  small.workload.samples = large.workload.samples = 3;
  small.workload.batch = 3;
  large.workload.batch = 1'000'000;
  EXPECT_EQ(largest_batch(large.workload), 3);
  EXPECT_EQ(memory_needed(large).total(), memory_needed(small).total());
  EXPECT_NO_THROW(refuse_too_large(large, nullptr, memory_needed(large).total()));
}

TEST(Budget, OnManyRanksTheLargestOneCounts) {
  TrainingJob one = job("tiny", Track::exact), many = one;
  many.strategy = plan::parse_strategy("pp2 tp4");
  EXPECT_LT(memory_needed(many).total(), memory_needed(one).total() / 2);
  EXPECT_GT(footprint(many, nullptr).training, memory_needed(one).total());  // what is replicated is there more often
  many.device_memory_bytes = memory_needed(many).total();
  EXPECT_NO_THROW(refuse_too_large(many, nullptr, std::int64_t{1} << 40));
  EXPECT_EQ(ranks_without_room(many), "");
  --many.device_memory_bytes;
  EXPECT_THROW(refuse_too_large(many, nullptr, std::int64_t{1} << 40), OutOfMemory);
  EXPECT_NO_THROW(require_threads(plan::parse_strategy("dp64")));
  EXPECT_THROW(require_threads(plan::parse_strategy("dp65")), BadInput);
}

// Stages of 3, 1 and 2 layers on data ranks of 2, 2 and 1 samples: each rank holds another number of bytes.
TEST(Budget, TheRanksThatDoNotFitAreNamed) {
  TrainingJob spread = job("tiny", Track::native, {"layers=6", "batch=5", "tied_head=false"});
  spread.strategy = plan::parse_strategy("dp3 pp3 layers=3,1,2");
  std::vector<std::int64_t> bytes;
  const plan::Pipeline pipeline = plan::pipeline_of(spread.strategy);
  for (std::int64_t r = 0; r < 9; ++r)
    bytes.push_back(predict::rank_form(spread.workload, spread.strategy, pipeline, static_cast<Rank>(r),
                                       predict::role_bytes(spread.track), largest_batch(spread.workload))
                        .memory.total());
  for (const std::int64_t limit : bytes) {
    spread.device_memory_bytes = limit;
    std::string runs;
    for (std::size_t r = 0; r < 9; ++r) {  // by hand: each rank that is full, and "to" within a run of them
      if (bytes[r] <= limit) continue;
      std::size_t last = r;
      while (last + 1 < 9 && bytes[last + 1] > limit) ++last;
      runs += (runs.empty() ? "" : ", ") + std::to_string(r) + (last > r ? " to " + std::to_string(last) : "");
      r = last;
    }
    EXPECT_EQ(ranks_without_room(spread), runs);
    if (runs.empty()) continue;
    try {
      refuse_too_large(spread, nullptr, std::int64_t{1} << 40);
      FAIL();
    } catch (const OutOfMemory& error) {
      const std::string text = error.what();
      const auto largest = std::ranges::max_element(bytes) - bytes.begin();
      EXPECT_NE(text.find(" on rank " + std::to_string(largest) + ", more than --device-memory "), text.npos) << text;
      EXPECT_TRUE(text.ends_with("; of 9 ranks these do not fit: " + runs)) << text;
    }
  }
}

TEST(Budget, WhatDoesNotFitIsRefusedBeforeItIsAllocated) {
  TrainingJob tiny = job("tiny", Track::exact);
  const std::int64_t need =
      predict::memory(tiny.workload, predict::role_bytes(tiny.track), tiny.workload.batch, 1).total();
  constexpr std::int64_t large = std::int64_t{1} << 40;
  tiny.device_memory_bytes = need;
  EXPECT_NO_THROW(refuse_too_large(tiny, nullptr, large));
  tiny.device_memory_bytes = need - 1;
  EXPECT_THROW(refuse_too_large(tiny, nullptr, large), OutOfMemory);
  tiny.device_memory_bytes = large;
  EXPECT_NO_THROW(refuse_too_large(tiny, nullptr, need));
  const auto refusal = [&](const JudgedPart* judged, std::int64_t machine_bytes) -> std::string {
    try {
      refuse_too_large(tiny, judged, machine_bytes);
    } catch (const OutOfMemory& error) {
      return error.what();
    }
    return "accepted";
  };
  const JudgedPart part = judged_part(tiny);
  EXPECT_EQ(refusal(nullptr, need - 1).find("judging"), std::string::npos);
  EXPECT_EQ(refusal(&part, need - 1).find("judging"), std::string::npos);
  EXPECT_NE(refusal(&part, need).find("judging it another"), std::string::npos) << "the oracle needs memory too";
}

TEST(Figures, WhatOldWeightsCostIsSaidInTokens) {
  const auto steps = [](const std::vector<double>& losses) {
    std::vector<engine::StepResult> all;
    for (const double loss : losses) {
      all.emplace_back();
      if (loss > 0) all.back().loss = loss;
      all.back().tokens = loss > 0 ? 10 : 0;
    }
    return all;
  };
  const auto w = workload::load("tiny");
  // Two of the synchronous steps have a loss, 3 and 2: their mean is 2.5.
  const auto synchronous = steps({3, 0, 2});
  const auto slow = learning_cost(w, steps({4, 3, 2.5, 2.5, 2}), synchronous).value();
  EXPECT_DOUBLE_EQ(slow.synchronous_mean, 2.5);
  EXPECT_EQ(slow.tokens, 50);
  EXPECT_EQ(slow.tokens_to_reach, 40);
  EXPECT_FALSE(learning_cost(w, steps({4, 3, 3}), synchronous)->tokens_to_reach);
  EXPECT_FALSE(learning_cost(w, steps({0}), synchronous));
  EXPECT_FALSE(learning_cost(w, steps({4}), steps({0})));
}

TEST(Figures, NothingIsLearnedWhereALossIsNotFinite) {
  const auto w = workload::load("tiny");
  const std::vector finite = {step(10, 3.0), step(10, 2.0)};
  auto wrong = finite;
  wrong[1].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(learning(w, finite));
  EXPECT_FALSE(learning(w, wrong));
  EXPECT_TRUE(learning_cost(w, finite, finite));
  EXPECT_FALSE(learning_cost(w, wrong, finite));
  auto stopped = finite;  // synchronous: it has no loss of the step that it skips
  stopped[1].loss.reset();
  stopped[1].skipped = engine::Skipped::non_finite;
  EXPECT_FALSE(learning_cost(w, finite, stopped));
}

}  // namespace
}  // namespace shardproof::harness
