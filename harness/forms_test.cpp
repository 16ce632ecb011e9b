// SPDX-License-Identifier: Apache-2.0
// Forms against ledgers: what was counted while training equals what the closed forms of harness/predict say.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "harness/predict/testing.hpp"
#include "harness/training.hpp"
#include "impl/engine/testing.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::harness {
namespace {

void expect_forms(const workload::Workload& w, Track track, std::int64_t microbatches, const std::string& attention) {
  SCOPED_TRACE(workload::print(w) + attention);
  const auto holding = predict::holding(w, {.attention = attention}, 0, 0);
  const auto batch = workload::batch(w, workload::Corpus(w), 1);
  const auto expect = [&](engine::testing::RankRun& run) {
    run.trainer.step(batch);
    const auto bytes = predict::role_bytes(track);
    auto& memory = run.device.memory();
    EXPECT_EQ(memory.peak(Category::parameter), predict::parameter_bytes(w, bytes));
    EXPECT_EQ(memory.peak(Category::gradient), predict::gradient_bytes(w, bytes));
    EXPECT_EQ(memory.peak(Category::optimizer_state), predict::state_bytes(w, bytes));

    const auto samples = workload::part(batch, microbatches, 0).size();
    const auto& saved = run.trainer.saved_bytes();
    ASSERT_EQ(std::ssize(saved), w.layers + 2);
    EXPECT_EQ(saved.front().bytes, predict::saved_embedding_bytes(w, bytes, samples));
    for (std::size_t l = 1; l + 1 < saved.size(); ++l) {
      EXPECT_EQ(saved[l].bytes, predict::saved_block_bytes(w, holding, bytes, samples)) << saved[l].part;
    }
    EXPECT_EQ(saved.back().bytes, predict::saved_head_bytes(w, bytes, samples));

    const auto flops = predict::flops(w, holding, batch.size());
    EXPECT_EQ(static_cast<double>(run.device.flops().model()), flops.total());
    EXPECT_EQ(static_cast<double>(run.device.flops().hardware()), flops.hardware(track));
  };
  engine::testing::on_ranks(w, track, "dp1 microbatches=" + std::to_string(microbatches) + " attention=" + attention,
                            expect, {.poison = false});
}

TEST(Forms, EqualTheLedgersOnRandomWorkloads) {
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto w = workload::random_workload(7, i);
    for (const auto track : {Track::exact, Track::f64, Track::native})
      expect_forms(w, track, 1 + i % 3, i % 2 == 0 ? "stored" : "tiled");
  }
}

TEST(Forms, EqualTheLedgersOnTiny) {
  for (const auto* dropout : {"dropout=0", "dropout=0.1"}) {
    for (const auto* attention : {"stored", "tiled"})
      expect_forms(workload::load("tiny", std::vector<std::string>{dropout}), Track::exact, 2, attention);
  }
}

/// What a training of one step counts, and its forms.
Record counted_and_predicted(const workload::Workload& w, const std::string& strategy, Track track) {
  TrainingJob job{.workload = w, .track = track};
  job.workload.steps = 1;
  job.strategy = plan::parse_strategy(strategy);
  const Trained trained = train(job, workload::Corpus(job.workload), {});
  Record record;
  record.ledgers = trained.ledgers;
  record.forms = trained.forms;
  return record;
}

TEST(Forms, EqualTheLedgersOnManyRanks) {
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto w = workload::random_workload(23, i);
    auto strategy = predict::testing::random_strategy(random, w);
    if (strategy.ranks() > 8) strategy.dp = 1;
    if (strategy.ranks() > 8) strategy.tp = 1;
    if (strategy.tp == 1) strategy.boundary = plan::Strategy{}.boundary;
    if ((strategy.dp > 1) + (strategy.pp > 1) + (strategy.tp > 1) < 2) strategy.order = plan::Strategy{}.order;
    const Track track = i % 3 == 0 ? Track::native : Track::exact;
    const Record record = counted_and_predicted(w, plan::print(strategy), track);
    EXPECT_GT(record.forms.size(), 6u);
    for (const auto& wrong : disagreements(record))
      ADD_FAILURE() << w.name << ", " << plan::print(strategy) << ": " << wrong;
  }
}

TEST(Forms, ThoseOfAnotherStrategyAreFound) {
  Record record = counted_and_predicted(workload::load("tiny"), "dp2 microbatches=2", Track::exact);
  EXPECT_TRUE(disagreements(record).empty());
  record.forms = counted_and_predicted(workload::load("tiny"), "dp2", Track::exact).forms;  // other microbatches alone
  EXPECT_FALSE(disagreements(record).empty());
}

TEST(Forms, WhatJudgingHoldsIsNotCounted) {
  TrainingJob job{.workload = workload::load("tiny", std::vector<std::string>{"steps=2"}),
                  .track = Track::exact,
                  .strategy = plan::parse_strategy("dp2 tp2")};
  const workload::Corpus corpus(job.workload);
  const auto ledgers = [&](std::int64_t observed_steps) {
    return train(job, corpus,
                 {.observed_steps = observed_steps, .observe = [](const auto&, const auto&) {}, .step = {}})
        .ledgers;
  };
  EXPECT_EQ(ledgers(2), ledgers(0));
}

}  // namespace
}  // namespace shardproof::harness
