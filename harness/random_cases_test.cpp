// SPDX-License-Identifier: Apache-2.0
#include "harness/random_cases.hpp"

#include <set>

#include <gtest/gtest.h>

#include "harness/check_case.hpp"
#include "impl/plan/strategy.hpp"

namespace shardproof::harness {
namespace {

TEST(RandomCases, AreLegalAndReachEveryKey) {
  std::set<std::string> keys, orders;
  std::set<std::int64_t> ranks;
  for (std::int64_t k = 0; k < 400; ++k) {
    const Case value = random_case(5, k, Track::exact);
    EXPECT_EQ(value, random_case(5, k, Track::exact));
    EXPECT_EQ(parse_case(print(value)), value);
    const auto strategy = plan::parse_strategy(value.strategy, value.ranks);
    EXPECT_NO_THROW(plan::require_legal(strategy, workload::load(value.workload), value.ranks)) << print(value);
    ranks.insert(value.ranks);
    for (const auto& key : plan::strategy_keys()) {
      if ((" " + value.strategy).find(" " + key.name) != std::string::npos) keys.insert(key.name);
    }
  }
  EXPECT_EQ(ranks, (std::set<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  for (const auto& key : plan::strategy_keys()) {
    const bool one_value = key.name == "sync";  // all_reduce only
    EXPECT_EQ(keys.contains(key.name), !one_value) << key.name;
  }
  EXPECT_NE(random_case(5, 0, Track::exact), random_case(6, 0, Track::exact));
}

TEST(RandomCases, Pass) {
  for (std::int64_t k = 0; k < 6; ++k) {
    const Checked checked = check_case(random_case(1, k, Track::exact), std::vector{Shown::any}, {});
    EXPECT_EQ(checked.record.verdict, Verdict::pass) << checked.record.case_text << ": " << checked.record.reason;
  }
}

}  // namespace
}  // namespace shardproof::harness
