// SPDX-License-Identifier: Apache-2.0
// Runs of schedules from files: what generators make, and what none of them does.
#include "impl/plan/schedule_file.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/check_case.hpp"
#include "impl/plan/plan.hpp"
#include "impl/plan/schedule_index.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;
using plan::Action;
using plan::ActionKind;

class ScheduleFileRuns : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("shardproof_run_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// The strategy that runs it.
  std::string write(const plan::Schedule& schedule, const std::string& keys = "") {
    const auto path = (folder_ / fmt::format("{}.csv", ++files_)).string();
    std::ofstream(path) << print(schedule);
    return fmt::format("pp{} schedule=file:{} microbatches={}{}", schedule.ranks.size(), path,
                       plan::extent_of(schedule).microbatches, keys);
  }

  /// Judged with late messages and poisoned memory, its ledgers held to their forms; the digest.
  static std::string digest_of(const std::string& strategy, const std::vector<std::string>& settings) {
    const Case value{"tiny", settings, strategy, plan::parse_strategy(strategy).ranks(), Track::exact};
    const Record record = check_case(value, {}, {}).record;
    EXPECT_EQ(record.verdict, Verdict::pass) << record.reason << "\n" << record.rerun;
    EXPECT_EQ(record.contract, "EXACT");
    EXPECT_FALSE(record.forms.empty());
    return record.digest;
  }

  fs::path folder_;
  int files_ = 0;
};

TEST_F(ScheduleFileRuns, WhatGeneratorsMakeTrainsAlikeFromAFile) {
  const std::vector<std::string> settings = {"layers=5", "batch=7", "steps=2", "clip=0.5"};
  const std::string digest = digest_of("dp1", settings);
  std::int64_t run = 0;
  for (const auto* generator : plan::schedules()) {
    if (generator->stale != workload::StaleProgram::Rule::none) continue;
    const plan::ScheduleShape shape{.ranks = 2, .microbatches = 4, .chunks = generator->chunks};
    EXPECT_EQ(digest_of(write(generator->generate(shape)), settings), digest) << generator->name;
    ++run;
  }
  EXPECT_EQ(run, 8);
}

/// Any order that keeps the dependencies, with stages wherever chance puts them.
plan::Schedule drawn(std::mt19937& random) {
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  const std::int64_t ranks = 2 + below(2), stages = ranks + below(4), microbatches = 1 + below(5);
  const bool mirrors = below(2) == 0;
  std::vector<std::int64_t> homes;  // by stage and microbatch
  std::map<std::int64_t, std::int64_t> home_of_stage;
  std::vector<Action> open;
  for (std::int64_t s = 0; s < stages; ++s)
    for (std::int64_t m = 0; m < microbatches; ++m) {
      home_of_stage.try_emplace(s, below(ranks));
      homes.push_back(mirrors ? below(ranks) : home_of_stage[s]);
      open.push_back({s, ActionKind::forward, m});
      if (below(2) == 0) {
        open.push_back({s, ActionKind::backward, m});
      } else {
        open.push_back({s, ActionKind::backward_input, m});
        open.push_back({s, ActionKind::backward_weight, m});
      }
    }
  std::set<std::tuple<std::int64_t, char, std::int64_t>> done;
  const auto can_run = [&](const Action& a) {
    const auto has = [&](std::int64_t stage, char kind) { return done.contains({stage, kind, a.microbatch}); };
    switch (a.kind) {
      case ActionKind::forward: return a.stage == 0 || has(a.stage - 1, 'F');
      case ActionKind::backward_weight: return has(a.stage, 'I');
      default: return has(a.stage, 'F') && (a.stage == stages - 1 || has(a.stage + 1, 'I'));
    }
  };
  plan::Schedule schedule{.ranks = std::vector<std::vector<Action>>(static_cast<std::size_t>(ranks))};
  while (!open.empty()) {
    const auto at = open.begin() + below(std::ssize(open));
    if (!can_run(*at)) continue;
    const Action a = *at;
    open.erase(at);
    schedule.ranks[static_cast<std::size_t>(homes[static_cast<std::size_t>(a.stage * microbatches + a.microbatch)])]
        .push_back(a);
    done.insert({a.stage, a.kind == ActionKind::backward ? 'I' : letter_of(a.kind), a.microbatch});
  }
  return schedule;
}

// Ranks without a stage, and messages that arrive in another order than they are wanted in, are not drawn anew by rule:
// the file is refused, and another one is drawn.
TEST_F(ScheduleFileRuns, WhatNoGeneratorMakesTrainsAlike) {
  std::mt19937 random(11);
  std::set<std::int64_t> depths;
  std::int64_t copies = 0, uneven = 0, run = 0;
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"layers=4", "batch=5", "steps=2", "tied_head=true"},
        std::vector<std::string>{"layers=6", "batch=7", "steps=2", "shared_block=1,4", "clip=0.5"}}) {
    const std::string digest = digest_of("dp1", settings);
    for (int k = 0; k < 12;) {
      const plan::Schedule schedule = drawn(random);
      const auto strategy = plan::parse_strategy(write(schedule));
      if (!plan::refusals(strategy, workload::load("tiny", settings)).empty()) continue;
      const auto& proven = *strategy.schedule.file();
      const plan::Placement placement(proven.schedule);
      depths.insert(proven.schedule.send_depth);
      uneven += proven.stages % std::ssize(schedule.ranks) != 0 ? 1 : 0;
      for (std::int64_t s = 0; s < placement.stages(); ++s) copies += placement.ranks_of(s).size() > 1 ? 1 : 0;
      const std::string keys = k % 3 == 0 ? " dp2" : k % 3 == 1 ? " tp2 boundary=scattered order=tp,pp,dp" : "";
      EXPECT_EQ(digest_of(print(strategy) + keys, settings), digest) << print(schedule);
      ++k, ++run;
    }
  }
  EXPECT_EQ(run, 24);
  EXPECT_GE(depths.size(), 2u);
  EXPECT_GE(copies, 5);
  EXPECT_GE(uneven, 5);
}

TEST_F(ScheduleFileRuns, AFileThatIsNotThereIsARefusalOfTheCase) {
  const Case value{"tiny", {}, "pp2 schedule=file:" + (folder_ / "none.csv").string(), 2, Track::exact};
  const Record record = check_case(value, {}, {}).record;
  EXPECT_EQ(record.verdict, Verdict::unsupported);
  EXPECT_NE(record.reason.find("none.csv': No such file or directory; the nearest legal strategy is pp2"),
            std::string::npos)
      << record.reason;
}

}  // namespace
}  // namespace shardproof::harness
