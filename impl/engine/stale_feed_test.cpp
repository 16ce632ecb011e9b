// SPDX-License-Identifier: Apache-2.0
// Training under schedules without a flush. That they equal their sequential programs, suites/cases/pipeline.json
// tests.
#include "impl/engine/stale_feed.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "impl/engine/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::engine {
namespace {

using plan::ActionKind;

workload::Workload stale(const std::string& strategy, std::vector<std::string> settings = {}) {
  settings.insert(settings.begin(), {"layers=4", "tied_head=false", "steps=6"});
  return plan::with_program_keys(workload::load("tiny", settings), plan::parse_strategy(strategy));
}

TEST(StaleFeed, GoesFromUpdateToUpdateAndKnowsWhatIsReadLater) {
  const std::string strategy = "pp3 schedule=pipedream";
  const auto w = stale(strategy);
  const auto plan = plan::make_plan(w, plan::parse_strategy(strategy));
  const workload::Corpus corpus(w);
  StaleFeed feed(plan, 0, [&](std::int64_t step) { return workload::batch(w, corpus, step); });
  std::vector<std::size_t> counts;
  for (std::int64_t step = 1; step <= w.steps; ++step) {
    const auto actions = feed.next_actions(step);
    ASSERT_FALSE(actions.empty());
    EXPECT_EQ(actions.back().kind, ActionKind::update);
    counts.push_back(actions.size());
    for (std::size_t k = 0; k < actions.size(); ++k) feed.done();
  }
  EXPECT_TRUE(feed.has_ended());
  // Two forwards ahead, then F, B, U; the last two without an F.
  EXPECT_EQ(counts, (std::vector<std::size_t>{5, 3, 3, 3, 2, 2}));
  StaleFeed fresh(plan, 0, {});
  EXPECT_EQ(fresh.version(2), 0);
  EXPECT_EQ(fresh.version(5), 3);
  EXPECT_TRUE(fresh.is_read(3));
  EXPECT_FALSE(fresh.is_read(4));
}

TEST(StaleFeed, ReadsBatchesAheadOnce) {
  const auto w = stale("pp2 schedule=pipedream");
  const auto plan = plan::make_plan(w, plan::parse_strategy("pp2 schedule=pipedream"));
  const workload::Corpus corpus(w);
  std::vector<std::int64_t> asked;
  StaleFeed feed(plan, 0, [&](std::int64_t step) {
    asked.push_back(step);
    return workload::batch(w, corpus, step);
  });
  EXPECT_EQ(feed.step(feed.step_of(1)).batch.step, 2);
  EXPECT_EQ(feed.step(1).batch.step, 1);
  EXPECT_EQ(feed.step(2).batch.step, 2);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(feed.steps_of_update(1), (plan::Range{2, 3}));
}

// Behind its update a step's batch is read by nobody: what is under way is kept, not the whole run.
TEST(StaleFeed, DropsTheBatchesOfAnUpdateBehindIt) {
  const std::string strategy = "pp3 schedule=pipedream replicas=2,1,1";
  const auto w = stale(strategy);
  const auto plan = plan::make_plan(w, plan::parse_strategy(strategy));
  const workload::Corpus corpus(w);
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    const std::int64_t turn = rank < 2 ? 2 : 1;  // steps of an update
    StaleFeed feed(plan, rank, [&](std::int64_t step) { return workload::batch(w, corpus, step); });
    for (std::int64_t step = 1; step <= w.steps; ++step) {
      feed.step(step);
      for (std::size_t left = feed.next_actions(step).size(); left > 0; --left) {
        EXPECT_GT(feed.step(step).batch.size(), 0) << "rank " << rank << " step " << step;
        feed.done();
      }
      for (std::int64_t k = 1; k <= step; ++k)
        EXPECT_EQ(feed.step(k).batch.size() == 0, k <= step / turn * turn) << "rank " << rank << " step " << step;
    }
  }
}

// The ranks of a run go by one cut of its schedule, which is made with the plan.
TEST(StaleFeed, GoesByThePlansOrder) {
  const auto w = stale("pp2 schedule=pipedream");
  auto plan = plan::make_plan(w, plan::parse_strategy("pp2 schedule=pipedream"));
  plan.stale->by_step[1].front() = 1;
  plan.stale->read[1].front() = 7;
  const StaleFeed feed(plan, 1, {});
  EXPECT_EQ(feed.next_actions(1).size(), 1u);
  EXPECT_EQ(feed.version(0), 7);
  EXPECT_FALSE(plan::make_plan(w, plan::parse_strategy("pp2 schedule=gpipe")).stale);
}

TEST(StaleFeed, AnUpdateOfRanksThatTakeTurnsIsOfAllTheirSteps) {
  const std::string strategy = "pp2 schedule=pipedream replicas=3,2";
  const auto w = stale(strategy);
  const auto plan = plan::make_plan(w, plan::parse_strategy(strategy));
  const StaleFeed third(plan, 2, {}), last(plan, 4, {});
  EXPECT_EQ(third.steps_of_update(2), (plan::Range{1, 4}));
  EXPECT_EQ(third.steps_of_update(5), (plan::Range{4, 7}));
  EXPECT_EQ(last.steps_of_update(1), (plan::Range{1, 3}));
  const auto doubled = plan::parse_strategy("pp2 schedule=pipedream_2bw microbatches=4");
  const auto plan_2bw = plan::make_plan(w, doubled);
  EXPECT_EQ(StaleFeed(plan_2bw, 1, {}).steps_of_update(7), (plan::Range{2, 3}));
}

// A stage keeps its own versions; the last one, which reads the newest, keeps none.
TEST(Trainer, KeepsThoseWeightsThatAreReadAndNoMore) {
  const std::string strategy = "pp3 schedule=pipedream";
  const auto w = stale(strategy, {"optimizer=sgd"});
  const workload::Corpus corpus(w);
  std::vector<std::int64_t> most(3), one(3);
  testing::on_ranks(w, Track::exact, strategy, [&](testing::RankRun& run) {
    const auto r = static_cast<std::size_t>(run.world.rank());
    one[r] = run.device.memory().current(Category::parameter);
    for (std::int64_t step = 1; step <= w.steps; ++step) run.trainer.step(workload::batch(w, corpus, step));
    most[r] = run.device.memory().peak(Category::parameter);
    EXPECT_EQ(run.device.memory().current(Category::parameter), one[r]);
  });
  for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(most[r], static_cast<std::int64_t>(3 - r) * one[r]) << r;
}

// Out of range in `exact`; infinite or no number in single precision, which raises no flag.
TEST(Trainer, AnUpdateThatWouldHaveToBeSkippedEndsTheRun) {
  const std::string strategy = "pp2 schedule=pipedream";
  const std::pair<Track, std::string> cases[] = {{Track::exact, "loss_scale=1099511627776"},
                                                 {Track::native, "learning_rate=1e30"}};
  for (const auto& [track, setting] : cases) {
    SCOPED_TRACE(setting);
    const auto w = stale(strategy, {setting});
    const workload::Corpus corpus(w);
    try {
      testing::on_ranks(w, track, strategy, [&](testing::RankRun& run) {
        for (std::int64_t step = 1; step <= w.steps; ++step) run.trainer.step(workload::batch(w, corpus, step));
      });
      ADD_FAILURE() << "all updates were made";
    } catch (const NotSupported& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("is out of range, and pipedream cannot skip the step"), text.npos) << text;
    }
  }
}

// Every loss, known at the end, is the one that its step shows; a step without a label has none.
TEST(Trainer, LossesAreThoseThatTheStepsShow) {
  const std::string strategy = "pp2 schedule=pipedream replicas=1,2";
  const auto w = stale(strategy, {"batch=4", "samples=11", "valid_labels=0,0,0,5"});
  const workload::Corpus corpus(w);
  std::vector<std::optional<double>> shown, losses;
  std::size_t without_label = 0;
  testing::on_ranks(w, Track::exact, strategy, [&](testing::RankRun& run) {
    for (std::int64_t step = 1; step <= w.steps; ++step) {
      const auto batch = workload::batch(w, corpus, step);
      run.trainer.step(batch);
      const auto seen = run.trainer.observe();
      if (run.world.rank() != Rank{0}) continue;
      const auto loss = std::ranges::find(seen.observables, Observed::loss, &Observable::kind);
      const auto values = as_doubles(loss->values);
      shown.push_back(values.empty() ? std::nullopt : std::optional(values[0]));
      without_label += batch.label_count == 0 ? 1 : 0;
    }
    auto all = run.trainer.losses();
    if (run.world.rank() == Rank{0}) losses = std::move(all);
  });
  EXPECT_EQ(losses, shown);
  EXPECT_GT(without_label, 0u);
  EXPECT_EQ(std::ranges::count_if(losses, [](const auto& loss) { return !loss; }),
            static_cast<std::ptrdiff_t>(without_label));
  EXPECT_LT(without_label, losses.size());
}

}  // namespace
}  // namespace shardproof::engine
