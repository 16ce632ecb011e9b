// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

Suite suite_of(std::vector<Case> cases, std::int64_t pass, std::int64_t unsupported,
               std::vector<Shown> shows = {Shown::gradient}) {
  return {"test", "w", {{"entry", "w", std::move(cases), std::move(shows), pass, unsupported}}};
}

std::vector<Checked> check(const Suite& suite, Tally& tally, std::int64_t threads = 1) {
  std::vector<Checked> all;
  check_all(select(suite, {}), threads, {}, [&](const Selected& selected, const Checked& checked) {
    tally.add(selected, checked);
    all.push_back(checked);
  });
  return all;
}

const Case tiny{"tiny", {"layers=1", "batch=2"}, "dp1", 1, Track::exact};

TEST(Check, SelectsByFilterTrackAndShard) {
  const Suite suite = load_suite("one_device");
  const auto all = select(suite, {});
  std::set<std::string> shards;
  for (std::int64_t k = 1; k <= 3; ++k) {
    for (const auto& selected : select(suite, {.shard = k, .shards = 3})) shards.insert(print(*selected.value));
  }
  EXPECT_EQ(shards.size(), all.size());
  EXPECT_EQ(select(suite, {.filters = {"dropout"}, .track = Track::f64}).size(), 4u);
  EXPECT_EQ(select(suite, {.filters = {"dropout", "prompt"}}).size(), 15u);
  EXPECT_EQ(select(suite, {.filters = {print(*all[5].value)}}).size(), 1u);
  EXPECT_THROW(select(suite, {.filters = {"no such entry"}}), BadInput);
  EXPECT_THROW(select(suite, {.filters = {"sgd"}, .shard = 7, .shards = 7}), BadInput);
}

TEST(Check, APassHasEverything) {
  Tally tally;
  const Suite suite = suite_of({tiny}, 1, 0);
  const auto all = check(suite, tally);
  const Record& record = all.at(0).record;
  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  EXPECT_EQ(record.case_text, print(tiny));
  EXPECT_EQ(record.digest.size(), 64u);
  EXPECT_GT(record.compared, 0);
  EXPECT_FALSE(record.forms.empty() || record.ledgers.empty());
  EXPECT_NE(record.rerun.find("check 'tiny layers=1 batch=2 | dp1 | 1 rank | exact | cpu | threads' --shows gradient"),
            std::string::npos)
      << record.rerun;
  EXPECT_EQ(tally.code(), ExitCode::pass);
}

TEST(Check, ThreadsGiveTheSameDigests) {
  std::vector<Case> cases;
  for (const char* strategy : {"dp1", "dp1 microbatches=2", "dp1 microbatches=3"}) {
    for (const Track track : {Track::exact, Track::f64})
      cases.push_back({tiny.workload, tiny.settings, strategy, 1, track});
  }
  Tally one, three;
  std::set<std::string> digests;
  const Suite suite = suite_of(cases, 6, 0);
  for (const auto& checked : check(suite, one))
    digests.insert(checked.record.track == Track::exact ? checked.record.digest : "");
  for (const auto& checked : check(suite, three, 3))
    digests.insert(checked.record.track == Track::exact ? checked.record.digest : "");
  EXPECT_EQ(digests.size(), 2u);  // one for all exact ones
  EXPECT_EQ(three.code(), ExitCode::pass);
}

TEST(Check, WhatWentWrongIsInTheRecordAndTheCode) {
  Case refused = tiny, wrong = tiny, missing = tiny, ranks = tiny, idle = tiny;
  refused.strategy = "dp2", refused.ranks = 2;
  wrong.settings.emplace_back("droput=1");
  missing.workload = "tinny";
  ranks.ranks = 2;
  const auto of = [](const Case& value, std::int64_t unsupported = 0, std::vector<Shown> shows = {Shown::gradient}) {
    Tally tally;
    const Suite suite = suite_of({value}, 1 - unsupported, unsupported, std::move(shows));
    const auto all = check(suite, tally);
    EXPECT_FALSE(all.at(0).record.reason.empty());
    return std::pair{all.at(0).record.verdict, tally.code()};
  };
  EXPECT_EQ(of(refused), (std::pair{Verdict::unsupported, ExitCode::check_failed}));  // not expected
  EXPECT_EQ(of(refused, 1), (std::pair{Verdict::unsupported, ExitCode::pass}));
  EXPECT_EQ(of(wrong), (std::pair{Verdict::error, ExitCode::usage}));
  EXPECT_EQ(of(missing), (std::pair{Verdict::error, ExitCode::usage}));
  EXPECT_EQ(of(ranks), (std::pair{Verdict::error, ExitCode::usage}));
  EXPECT_EQ(of(idle, 0, {Shown::clip_bound}), (std::pair{Verdict::mistrusted, ExitCode::check_failed}));
}

TEST(Check, ACaseThatIsExpectedToBeRefusedAndIsNotFails) {
  Tally tally;
  const Suite suite = suite_of({tiny}, 0, 1);
  check(suite, tally);
  EXPECT_EQ(tally.code(), ExitCode::check_failed);
  EXPECT_EQ(tally.unexpected().size(), 1u);
}

TEST(Check, ATallyOfNothingIsNoPass) { EXPECT_EQ(Tally().code(), ExitCode::internal); }

TEST(Check, AnErrorWhileRecordingStopsTheRun) {
  const Suite suite = suite_of({tiny, tiny, tiny}, 3, 0);
  int ended = 0;
  const auto fail = [&](const Selected&, const Checked&) {
    ++ended;
    throw WriteError("full");
  };
  EXPECT_THROW(check_all(select(suite, {}), 2, {}, fail), WriteError);
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace shardproof::harness
