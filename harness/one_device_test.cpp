// SPDX-License-Identifier: Apache-2.0
// The engine against the oracle, end to end: a part of what `check --suite one_device` runs, and what only shows beside
// several runs.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/check_case.hpp"

namespace shardproof::harness {
namespace {

Checked checked(const std::vector<std::string>& settings, const std::string& strategy, Track track) {
  const Case value{"tiny", settings, strategy, 1, track};
  return check_case(value, std::vector{Shown::gradient}, {});
}

double error_over_bound(const Checked& result) {
  for (const auto& [name, value] : result.record.figures) {
    if (name == "error_over_bound") return value;
  }
  return -1;
}

const std::vector<std::vector<std::string>> workloads = {{},
                                                         {"activation=relu", "tied_head=false"},
                                                         {"dropout=0.2", "optimizer=sgd", "clip=1"},
                                                         {"layers=3", "shared_block=0,2"}};

TEST(OneDevice, EveryAccumulationHasOneDigestInExact) {
  for (const auto& settings : workloads) {
    std::set<std::string> digests;
    for (const int parts : {1, 2, 3, 5, 8}) {
      const auto result = checked(settings, fmt::format("dp1 microbatches={}", parts), Track::exact);
      EXPECT_EQ(result.record.verdict, Verdict::pass) << result.record.reason;
      digests.insert(result.record.digest);
    }
    EXPECT_EQ(digests.size(), 1u);
  }
}

/// The factor 8 of the yardstick: the libraries' orders of summation, and three ways of accumulating, stay under half.
TEST(OneDevice, AccumulationStaysUnderHalfOfTheBound) {
  for (const auto& settings : workloads) {
    for (const int parts : {1, 2, 3}) {
      for (const Track track : {Track::f64, Track::native}) {
        const auto result = checked(settings, fmt::format("dp1 microbatches={}", parts), track);
        EXPECT_EQ(result.record.verdict, Verdict::pass) << result.record.reason;
        EXPECT_LT(error_over_bound(result), 0.5) << result.record.case_text;
        EXPECT_GT(error_over_bound(result), 0) << result.record.case_text;  // another order than the oracle's
      }
    }
  }
}

TEST(OneDevice, DifferentProgramsHaveDifferentDigests) {
  std::set<std::string> digests;
  for (const auto& settings : workloads) digests.insert(checked(settings, "dp1", Track::exact).record.digest);
  EXPECT_EQ(digests.size(), workloads.size());
}

TEST(OneDevice, FormsAreHeldAgainstLedgers) {
  const auto result = checked({}, "dp1", Track::native);
  EXPECT_GE(result.record.forms.size(), 5u);
  EXPECT_TRUE(disagreements(result.record).empty());
}

}  // namespace
}  // namespace shardproof::harness
