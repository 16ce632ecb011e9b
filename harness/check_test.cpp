// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <map>
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
  const auto selected_cases = select(suite, {});
  check_all(one_by_one(selected_cases), threads, {}, [&](const Selected& selected, const Checked& checked) {
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
  EXPECT_EQ(record.digest_steps, 3);
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
  refused.strategy = "schedule=gpipe";  // of one stage
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
  EXPECT_EQ(of(ranks, 1), (std::pair{Verdict::unsupported, ExitCode::pass}));
  EXPECT_EQ(of(idle, 0, {Shown::clip_bound}), (std::pair{Verdict::mistrusted, ExitCode::check_failed}));
}

/// The strategy table has not refused these: they do not run, and no expected refusal excuses them.
TEST(Check, WhatAKernelDoesNotSupportIsNoRefusalOfTheTable) {
  const Case vocab{"tiny",
                   {"vocab=4194304", "layers=1", "hidden=1", "heads=1", "kv_heads=1", "sequence=1", "batch=1",
                    "optimizer=sgd", "steps=1"},
                   "dp1",
                   1,
                   Track::native};
  Tally tally;
  const Suite suite = suite_of({vocab}, 0, 1);
  const auto all = check(suite, tally);
  EXPECT_EQ(all.at(0).record.verdict, Verdict::error) << all.at(0).record.reason;
  EXPECT_NE(all.at(0).record.reason.find("vocabulary"), std::string::npos) << all.at(0).record.reason;
  EXPECT_EQ(tally.code(), ExitCode::usage);
}

TEST(Check, WhatDoesNotFitIsRefusedBeforeItIsAllocated) {
  Case large = tiny;
  large.settings.emplace_back("unused=2147483647");
  Environment here;
  here.memory_bytes = std::int64_t{1} << 30;
  const Checked checked = check_case(large, std::vector{Shown::gradient}, here);
  EXPECT_EQ(checked.code, ExitCode::out_of_memory);
  EXPECT_NE(checked.record.reason.find("more than this machine's 1.00 GiB"), std::string::npos)
      << checked.record.reason;
}

/// As if bounds were too wide to see it: of the second training, gradients are shown as the first one had them.
TEST(Check, ACaseThatDoesNotSeeADroppedTermIsMistrusted) {
  Case tiled = tiny;
  tiled.strategy = "attention=tiled";
  for (const Track track : {Track::exact, Track::f64, Track::native}) {
    tiled.track = track;
    std::map<std::pair<std::int64_t, std::string>, std::vector<double>> first;
    int shown = 0, changed = 0;
    CheckOptions hiding;
    hiding.tamper.tensor = [&](std::int64_t step, Observed kind, const std::string& name, Queue& queue,
                               const Tensor& tensor) {
      if (kind != Observed::gradient || tensor.dtype() != Dtype::f64) return;
      queue.submit("hide", [&](KernelScope& scope) {
        auto* const values = scope.update<double>(tensor);
        std::vector<double> here(values, values + tensor.elements());
        const auto [at, is_new] = first.try_emplace({step, name}, here);
        ++shown;
        changed += at->second != here ? 1 : 0;
        std::ranges::copy(at->second, values);
      });
    };
    const std::vector shows{Shown::gradient};
    EXPECT_EQ(check_case(tiled, shows, {}).record.verdict, Verdict::pass);
    const Record record = check_case(tiled, shows, {}, hiding).record;
    const bool twice = track == Track::f64;  // exact has no bounds, and native's may be too wide for one term
    EXPECT_EQ(record.verdict, twice ? Verdict::mistrusted : Verdict::pass) << record.reason;
    EXPECT_EQ(record.reason.starts_with("a term of "), twice) << record.reason;
    EXPECT_EQ(shown, twice ? 2 * std::ssize(first) : 0);
    EXPECT_EQ(changed, twice ? 1 : 0) << "the term is missing in one gradient alone";
  }
}

TEST(Check, ACaseThatIsExpectedToBeRefusedAndIsNotFails) {
  Tally tally;
  const Suite suite = suite_of({tiny}, 0, 1);
  check(suite, tally);
  EXPECT_EQ(tally.code(), ExitCode::check_failed);
  EXPECT_EQ(tally.unexpected().size(), 1u);
}

TEST(Check, TwoDigestsOfOneWorkloadFail) {
  const Suite suite = suite_of({tiny, tiny, tiny, tiny}, 4, 0);
  Checked checked = check_case(tiny, std::vector{Shown::gradient}, {});
  const auto tallied = [&](const std::vector<std::string>& digests, Track track = Track::exact) {
    Tally tally;
    for (std::size_t k = 0; k < digests.size(); ++k) {
      checked.record.digest = digests[k];
      checked.record.track = track;
      tally.add({&suite.entries[0], &suite.entries[0].cases[k]}, checked);
    }
    return tally;
  };
  const std::string a(64, 'a'), b(64, 'b');
  EXPECT_EQ(tallied({a, a}).code(), ExitCode::pass);
  EXPECT_NE(tallied({a, a}).report().find("1 digest for 1 workload"), std::string::npos);
  const Tally split = tallied({a, a, b, b});
  EXPECT_EQ(split.code(), ExitCode::check_failed);
  EXPECT_EQ(split.split().size(), 1u);
  EXPECT_NE(split.report().find("2 digests for 1 workload"), std::string::npos);
  EXPECT_EQ(tallied({a, b}, Track::native).code(), ExitCode::pass);  // sums in another order
}

TEST(Check, LayoutsShareADigestAndWorkloadsDoNot) {
  std::vector<Case> cases;
  for (const char* strategy : {"dp1", "dp2", "pp2", "tp2", "dp2 optimizer=sgd", "tp2 optimizer=sgd"}) {
    const bool alone = std::string_view(strategy) == "dp1";
    cases.push_back({tiny.workload, {"batch=2"}, strategy, alone ? 1 : 2, Track::exact});
  }
  Tally tally;
  const Suite suite = suite_of(cases, 6, 0);
  check(suite, tally, 2);
  EXPECT_EQ(tally.code(), ExitCode::pass);
  EXPECT_NE(tally.report().find("2 digests for 2 workloads"), std::string::npos) << tally.report();
}

TEST(Check, ATallyOfNothingIsNoPass) { EXPECT_EQ(Tally().code(), ExitCode::internal); }

TEST(Check, AnErrorWhileRecordingStopsTheRun) {
  const Suite suite = suite_of({tiny, tiny, tiny}, 3, 0);
  int ended = 0;
  const auto fail = [&](const Selected&, const Checked&) {
    ++ended;
    throw WriteError("full");
  };
  const auto cases = select(suite, {});
  EXPECT_THROW(check_all(one_by_one(cases), 2, {}, fail), WriteError);
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace shardproof::harness
