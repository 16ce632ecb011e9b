// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/replay.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

std::vector<std::pair<double, double>> times(const std::vector<Operation>& operations) {
  std::vector<std::pair<double, double>> list;
  for (const Span& span : replay(operations)) list.emplace_back(span.start, span.end);
  return list;
}
using Times = std::vector<std::pair<double, double>>;

std::string refusal(const std::vector<Operation>& operations) {
  try {
    replay(operations);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Replay, NothingTakesNoTime) { EXPECT_TRUE(replay({}).empty()); }

TEST(Replay, ALaneRunsInItsOrder) {
  EXPECT_EQ(times({{0, 0, 2, {}}, {0, 0, 3, {}}, {0, 0, 0, {}}}), (Times{{0, 2}, {2, 5}, {5, 5}}));
}

TEST(Replay, LanesAndRanksRunAtOnce) {
  EXPECT_EQ(times({{0, 0, 2, {}}, {0, 1, 3, {}}, {1, 0, 4, {}}}), (Times{{0, 2}, {0, 3}, {0, 4}}));
}

TEST(Replay, AnOperationWaitsForTheLastOfItsDependencies) {
  EXPECT_EQ(times({{0, 0, 2, {}}, {1, 0, 5, {}}, {2, 0, 1, {{0}, {1}}}, {2, 0, 1, {}}}),
            (Times{{0, 2}, {0, 5}, {5, 6}, {6, 7}}));
}

TEST(Replay, EachDependencyHasItsOwnLatency) {
  EXPECT_EQ(times({{0, 0, 5, {}}, {1, 0, 2, {}}, {2, 0, 1, {{0}, {1, 1}}}, {3, 0, 1, {{0}, {1, 4}}}}),
            (Times{{0, 5}, {0, 2}, {5, 6}, {6, 7}}));
}

TEST(Replay, DependenciesMayPointForward) {
  EXPECT_EQ(times({{0, 0, 2, {{2}}}, {0, 0, 1, {}}, {1, 0, 4, {}}}), (Times{{4, 6}, {6, 7}, {0, 4}}));
}

TEST(Replay, LongChainsNeedNoStack) {
  std::vector<Operation> chain(200000);
  for (std::size_t k = 0; k < chain.size(); ++k) {
    chain[k].rank = static_cast<std::int64_t>(k);
    chain[k].cost = 1;
    if (k + 1 < chain.size()) chain[k].dependencies = {{k + 1}};
  }
  EXPECT_EQ(replay(chain).front().end, 200000);
}

TEST(Replay, ACircleIsNamed) {
  EXPECT_EQ(refusal({{0, 0, 1, {{0}}}}), "replay: operations wait for each other: 0 (rank 0, lane 0) for 0");
  // 2 waits for 1 on its lane, 1 for 3, 3 for 2; 4 only follows.
  EXPECT_EQ(refusal({{0, 0, 1, {}}, {1, 0, 1, {{3}}}, {1, 0, 1, {}}, {2, 7, 1, {{2}}}, {0, 0, 1, {{1}}}}),
            "replay: operations wait for each other: 1 (rank 1, lane 0) for 3 (rank 2, lane 7) for 2 (rank 1, lane 0) "
            "for 1");
}

TEST(Replay, WhatIsNoOperationIsRefused) {
  EXPECT_EQ(refusal({{0, 0, 1, {}}, {0, 0, 1, {{2}}}}), "replay: operation 1 depends on 2 of 2");
  EXPECT_EQ(refusal({{0, 0, 1, {}}, {0, 0, 1, {{0, -2}}}}), "replay: operation 1 has latency -2 after 0");
  EXPECT_EQ(refusal({{0, 0, -1, {}}}), "replay: operation 0 costs -1");
  EXPECT_EQ(refusal({{0, 0, std::numeric_limits<double>::quiet_NaN(), {}}}), "replay: operation 0 costs nan");
}

}  // namespace
}  // namespace shardproof::plan
