// SPDX-License-Identifier: Apache-2.0
#include "harness/exhaustive.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

// 2 x 3 x 3 x 2 combinations, of which those on more than 4 ranks and those of gpipe on one stage are not legal.
constexpr const char* factors = R"("workload": "tiny", "set": {"layers": 3}, "tracks": ["exact", "f64"], "steps": 1,
    "most_ranks": 4, "factors": {"dropout": [0, 0.5]},
    "strategy_factors": {"pp": [1, 2, 3], "dp": [1, 2, 3], "schedule": ["naive", "gpipe"]})";

std::string entry(const std::string& name, const std::string& rest) {
  return R"({"name": ")" + name + R"(", "why": "w", )" + rest + "}";
}

Suite suite_of(const std::string& entries) { return parse_suite(R"({"why": "w", "cases": [)" + entries + "]}", "s"); }

/// One with grids of 36 and 3 combinations, and one without.
Suite suite() {
  return suite_of(entry("grid", std::string(factors) + R"(, "cover": "pairs", "expect": {"pass": 18})") + "," +
                  entry("plain", R"("workload": "w01", "tracks": ["exact"], "strategies": ["dp1", "dp2"],
                                   "expect": {"pass": 2})") +
                  "," + entry("small", R"("workload": "w02", "tracks": ["f64"], "strategies": ["dp1", "schedule=gpipe"],
                                   "factors": {"layers": [2, 3, 4]}, "cover": "pairs",
                                   "expect": {"pass": 3, "unsupported": 3})"));
}

std::vector<std::string> printed(Exhaustive& exhaustive) {
  std::vector<std::string> cases;
  while (const auto selected = exhaustive.next()) cases.push_back(listed(*selected->value, selected->entry->name));
  return cases;
}

std::vector<std::string> printed(const Suite& suite, const Selection& selection) {
  Exhaustive exhaustive(suite, selection);
  return printed(exhaustive);
}

std::multiset<std::string> of_all(const Suite& suite) {
  std::multiset<std::string> cases;
  for (const auto& entry : suite.entries)
    for (const auto& value : entry.cases) cases.insert(listed(value, entry.name));
  return cases;
}

TEST(Exhaustive, HasWhatTheEntriesWouldHaveWithoutPairs) {
  const std::string all = entry("grid", std::string(factors) + R"(, "expect": {"pass": 36})");
  const Suite whole = suite_of(all);
  const Suite in_pairs = suite();
  std::multiset<std::string> expected = of_all(whole);
  EXPECT_EQ(expected.size(), 36u);
  for (const auto& one : of_all(in_pairs))
    if (!one.ends_with("# grid")) expected.insert(one);
  const auto cases = printed(in_pairs, {});
  EXPECT_EQ(std::multiset<std::string>(cases.begin(), cases.end()), expected);
}

TEST(Exhaustive, GridsComeInTurnAfterWhatHasNone) {
  const Suite in_pairs = suite();
  const auto cases = printed(in_pairs, {});
  EXPECT_TRUE(cases[0].ends_with("# plain"));
  EXPECT_TRUE(cases[1].ends_with("# plain"));
  for (std::size_t k = 2; k < 14; k += 2) {
    EXPECT_TRUE(cases[k].ends_with("# grid")) << cases[k];
    EXPECT_TRUE(cases[k + 1].ends_with("# small")) << cases[k + 1];
  }
  EXPECT_EQ(cases, printed(in_pairs, {})) << "the same each time";
}

TEST(Exhaustive, ABeginningIsSpreadOverEveryFactor) {
  const Suite in_pairs = suite();
  const auto cases = printed(in_pairs, {.filters = {"grid"}, .track = Track::exact});
  for (const char* level : {"dropout=0 ", "dropout=0.5", "gpipe", "dp2", "pp2"})
    EXPECT_TRUE(std::any_of(cases.begin(), cases.begin() + 6, [&](const auto& c) { return c.find(level) != c.npos; }))
        << level;
}

TEST(Exhaustive, ShardsAreAPartition) {
  const Suite in_pairs = suite();
  for (const std::int64_t shards : {2, 5, 36, 37, 100}) {
    std::vector<std::string> cases;
    for (std::int64_t shard = 1; shard <= shards; ++shard) {
      const auto some = printed(in_pairs, {.shard = shard, .shards = shards});
      cases.insert(cases.end(), some.begin(), some.end());
    }
    const auto all = printed(in_pairs, {});
    EXPECT_EQ(std::multiset<std::string>(cases.begin(), cases.end()),
              std::multiset<std::string>(all.begin(), all.end()))
        << shards;
  }
}

TEST(Exhaustive, FiltersAreOfNamesAndTracks) {
  const Suite in_pairs = suite();
  const auto cases = printed(in_pairs, {.filters = {"gr*"}, .track = Track::f64});
  EXPECT_EQ(cases.size(), 18u);
  for (const auto& one : cases) EXPECT_TRUE(one.ends_with("# grid") && one.find("| f64 |") != one.npos) << one;
  EXPECT_THROW(Exhaustive(in_pairs, {.filters = {"plain"}}), BadInput);
  EXPECT_THROW(Exhaustive(in_pairs, {.filters = {"small"}, .track = Track::exact}), BadInput);
}

TEST(Exhaustive, NothingIsMissedInAGrid) {
  const Suite in_pairs = suite();
  Exhaustive exhaustive(in_pairs, {.filters = {"small"}});
  Tally tally;
  while (const auto selected = exhaustive.next()) {
    Checked checked;
    checked.record.verdict = selected->value->strategy == "dp1" ? Verdict::pass : Verdict::unsupported;
    checked.code = ExitCode::pass;
    tally.add(*selected, checked);
  }
  EXPECT_TRUE(tally.unexpected().empty());
}

TEST(Exhaustive, SizesAreSaidBeforeAndAfter) {
  const Suite in_pairs = suite();
  Exhaustive exhaustive(in_pairs, {});
  const std::string sizes = exhaustive.sizes();
  EXPECT_NE(sizes.find("grid   72     36 legal"), sizes.npos) << sizes;
  EXPECT_NE(sizes.find("small  6      6 legal"), sizes.npos) << sizes;
  for (int k = 0; k < 4; ++k) exhaustive.next();
  EXPECT_EQ(exhaustive.report().find("to the end"), std::string::npos) << exhaustive.report();
  printed(exhaustive);
  EXPECT_EQ(exhaustive.report(), "grids  78 of 78 cases looked at, to the end, 42 of them legal\n");
}

// The walk must not begin with what is not legal for long, nor take memory for what it does not return.
TEST(Exhaustive, BillionsAreWalkedOneByOne) {
  const Suite suite = load_suite("conformance");
  Exhaustive exhaustive(suite, {.filters = {"options"}});
  EXPECT_GT(size_of(*std::ranges::find(suite.entries, "options", &Entry::name)->space), 1e9);
  std::set<std::string> cases;
  for (int k = 0; k < 50; ++k) cases.insert(print(*exhaustive.next()->value));
  EXPECT_EQ(cases.size(), 50u);
}

}  // namespace
}  // namespace shardproof::harness
