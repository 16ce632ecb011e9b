// SPDX-License-Identifier: Apache-2.0
// The forms against the numbers of Korthikanti et al. 2022 (suites/papers/korthikanti2022.json).
#include <cmath>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"

namespace shardproof::predict {
namespace {

struct Model {
  std::string name;
  workload::Workload workload;
  double devices, iteration_seconds, utilisation_percent;
  std::int64_t microbatch;
};

const nlohmann::json& paper() {
  static const auto json = nlohmann::json::parse(std::ifstream(SHARDPROOF_PAPERS "/korthikanti2022.json"));
  return json;
}

std::vector<Model> models() {
  std::vector<Model> result;
  for (const auto& row : paper().at("models").at("rows")) {
    workload::Workload w;
    w.heads = w.kv_heads = row.at(1).get<std::int64_t>();
    w.hidden = row.at(2).get<std::int64_t>();
    w.mlp_hidden = 4 * w.hidden;
    w.layers = row.at(3).get<std::int64_t>();
    w.batch = row.at(5).get<std::int64_t>();
    w.sequence = paper().at("sequence").get<std::int64_t>();
    w.vocab = paper().at("vocabulary").get<std::int64_t>();
    w.dropout = 0.1;
    result.push_back({.name = row.at(0).get<std::string>(),
                      .workload = w,
                      .devices = row.at(4).get<double>(),
                      .iteration_seconds = row.at(7).get<double>(),
                      .utilisation_percent = row.at(8).get<double>(),
                      .microbatch = row.at(6).get<std::int64_t>()});
  }
  return result;
}

// Theirs: 2 bytes an activation, 1 a mask, statistics not counted.
constexpr RoleBytes half{.activation = 2, .statistic = 0, .mask = 1, .parameter = 2, .gradient = 2, .state = 4};

TEST(Korthikanti2022, BlockBytesAreEquation1) {
  ASSERT_EQ(models().size(), 4U);
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const std::int64_t sbh = w.sequence * model.microbatch * w.hidden;
    ASSERT_EQ(5 * w.heads * w.sequence % w.hidden * 3 % w.hidden, 0) << "thirds at most";
    EXPECT_EQ(3 * saved_block_bytes(w, half, model.microbatch),
              sbh * (3 * 34 + 3 * 5 * w.heads * w.sequence / w.hidden))
        << model.name;
  }
}

TEST(Korthikanti2022, BlockBytesAreEquation2) {
  const auto t = paper().at("block_bytes_tensor").at("tensor_ranks").get<std::int64_t>();
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const plan::Strategy strategy{.tp = t};
    const std::int64_t sbh = w.sequence * model.microbatch * w.hidden;
    for (std::int64_t k = 0; k < t; ++k) {
      // 3 t times both sides, for whole numbers.
      EXPECT_EQ(3 * t * saved_block_bytes(w, holding(w, strategy, 0, k), half, model.microbatch),
                sbh * (3 * t * 10 + 3 * 24 + 3 * 5 * w.heads * w.sequence / w.hidden))
          << model.name;
    }
  }
}

TEST(Korthikanti2022, TiledBlocksKeepWhatSelectiveRecomputationDoes) {
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const Holding tiled = holding(w, {.attention = "tiled"}, 0, 0);
    EXPECT_EQ(saved_block_bytes(w, tiled, half, model.microbatch), 34 * w.sequence * model.microbatch * w.hidden)
        << model.name;
  }
}

TEST(Korthikanti2022, AttentionsShareOfABlockIsTheirs) {
  std::map<std::string, workload::Workload> by_name;
  for (const Model& model : models()) by_name[model.name] = model.workload;
  for (const auto& row : paper().at("attention_share").at("rows")) {
    const auto& w = by_name.at(row.at(0).get<std::string>());
    const double sbh = static_cast<double>(w.sequence * w.hidden);
    const double block = static_cast<double>(saved_block_bytes(w, half, 1));
    EXPECT_DOUBLE_EQ(block / sbh - 34, row.at(1).get<double>());
    EXPECT_NEAR(100 * (block - 34 * sbh) / block, row.at(2).get<double>(), 0.5);  // printed without decimals
  }
}

TEST(Korthikanti2022, ModelFlopsAreEquation7) {
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const auto d = [](std::int64_t x) { return static_cast<double>(x); };
    const double h = d(w.hidden), s = d(w.sequence), l = d(w.layers), v = d(w.vocab);
    const double equation7 = 72 * d(w.batch) * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
    // Their expression rounds about ten times, ours not at all or as often.
    EXPECT_NEAR(flops(w, w.batch).total(), equation7, 20 * 0x1p-53 * equation7) << model.name;
  }
}

TEST(Korthikanti2022, UtilisationIsTable5) {
  const double peak = paper().at("peak_flops_per_second").get<double>();
  for (const Model& model : models()) {
    const double percent =
        100 * flops(model.workload, model.workload.batch).total() / (model.iteration_seconds * model.devices * peak);
    // Seconds are printed to 0.01, percentages to 0.1.
    const double bound = percent * 0.005 / (model.iteration_seconds - 0.005) + 0.05;
    EXPECT_NEAR(percent, model.utilisation_percent, bound) << model.name;
  }
}

}  // namespace
}  // namespace shardproof::predict
