// SPDX-License-Identifier: Apache-2.0
// The forms against the numbers of Rajbhandari et al. 2020, ZeRO (suites/papers/rajbhandari2020.json).
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/predict/testing.hpp"
#include "harness/predict/traffic.hpp"

namespace shardproof::predict {
namespace {

TEST(Rajbhandari2020, DataParallelTrafficIsSection7_1) {
  const auto paper = nlohmann::json::parse(std::ifstream(SHARDPROOF_PAPERS "/rajbhandari2020.json"));
  const auto times_psi = paper.at("data_parallel_traffic").at("times_psi").get<std::int64_t>();
  const auto w = workload::load("gpt2-124m");
  constexpr std::int64_t psi = 124'439'808, bytes = 4;
  for (const std::int64_t n : {2, 3, 8, 64, 1000}) {
    const Traffic t = testing::traffic_of(w, {.dp = n}, Track::native, w.batch).at({"dp", "all_reduce", "gradient"});
    EXPECT_EQ(t.payload_bytes, n * psi * bytes);
    // Theirs is for large n. Exactly, each of n ranks leaves out its own part (Patarasuk and Yuan 2009): 2 Psi (n-1)/n.
    EXPECT_EQ(t.wire_bytes, times_psi * psi * (n - 1) * bytes);
  }
  EXPECT_FALSE(testing::traffic_of(w, {}, Track::native, w.batch).contains({"dp", "all_reduce", "gradient"}));
}

TEST(Rajbhandari2020, TensorAndPipelineRanksMoveTheirOwnGradientsOnly) {
  const auto paper = nlohmann::json::parse(std::ifstream(SHARDPROOF_PAPERS "/rajbhandari2020.json"));
  const auto times_psi = paper.at("data_parallel_traffic").at("times_psi").get<std::int64_t>();
  auto w = workload::load("gpt2-124m");
  w.tied_head = false;
  for (const plan::Strategy& s : {plan::Strategy{.dp = 4, .pp = 3}, plan::Strategy{.dp = 4, .pp = 3, .tp = 2}}) {
    const Traffic t = testing::traffic_of(w, s, Track::native, w.batch).at({"dp", "all_reduce", "gradient"});
    // What every tensor rank holds whole: two norms and the biases behind a sum in each block, positions, final norm.
    const std::int64_t whole = w.layers * 6 * w.hidden + w.sequence * w.hidden + 2 * w.hidden;
    const std::int64_t psi = 124'439'808 + w.vocab * w.hidden + (s.tp - 1) * whole;
    EXPECT_EQ(t.wire_bytes, times_psi * psi * (4 - 1) * 4);
  }
}

}  // namespace
}  // namespace shardproof::predict
