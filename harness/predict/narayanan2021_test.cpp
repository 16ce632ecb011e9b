// SPDX-License-Identifier: Apache-2.0
// The forms against the numbers of Narayanan et al. 2021, PTD-P (suites/papers/narayanan2021.json).
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "harness/predict/testing.hpp"
#include "harness/predict/traffic.hpp"

namespace shardproof::predict {
namespace {

struct Model {
  workload::Workload workload;
  plan::Strategy strategy;  // microbatches of one sample: b = 1
  double parameters_billion;
};

const nlohmann::json& paper() {
  static const auto json = nlohmann::json::parse(std::ifstream(SHARDPROOF_PAPERS "/narayanan2021.json"));
  return json;
}

std::vector<Model> models() {
  std::vector<Model> result;
  for (const auto& row : paper().at("models").at("rows")) {
    const auto number = [&](std::size_t k) { return row.at(k).get<std::int64_t>(); };
    workload::Workload w;
    w.heads = w.kv_heads = number(1);
    w.hidden = number(2);
    w.mlp_hidden = 4 * w.hidden;
    w.layers = number(3);
    w.batch = number(7);
    w.sequence = paper().at("sequence").get<std::int64_t>();
    w.vocab = paper().at("vocabulary").get<std::int64_t>();
    const std::int64_t tp = number(4), pp = number(5), dp = number(6) / (tp * pp);
    const plan::Strategy s{.dp = dp, .pp = pp, .tp = tp, .schedule = "gpipe", .microbatches = w.batch / dp};
    result.push_back({w, s, row.at(0).get<double>()});
  }
  return result;
}

TEST(Narayanan2021, ParametersAreEquation2) {
  ASSERT_EQ(models().size(), 10U);
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const std::int64_t h = w.hidden, final_norm = 2 * h;  // which they leave out
    const std::int64_t equation2 = 12 * w.layers * h * h + 13 * w.layers * h + (w.vocab + w.sequence) * h;
    EXPECT_EQ(parameter_count(w), equation2 + final_norm);
    EXPECT_NEAR(static_cast<double>(parameter_count(w)) * 1e-9, model.parameters_billion, 0.05);  // printed to 0.1
  }
}

// Equal up to the rounding of some ten double operations, each of 2^-53.
TEST(Narayanan2021, FlopsWithRecomputationAreEquation3) {
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const double b = static_cast<double>(w.batch), s = static_cast<double>(w.sequence),
                 v = static_cast<double>(w.vocab), l = static_cast<double>(w.layers), h = static_cast<double>(w.hidden);
    const double equation3 = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
    EXPECT_NEAR(flops_with_full_recomputation(w, w.batch) / equation3, 1, 1e-14);
  }
}

TEST(Narayanan2021, TheBuiltInModelsAreThoseOfTheTable) {
  const auto rows = models();
  const std::vector<std::string> names = {"1.7b", "3.6b", "7.5b", "18b", "39b", "76b", "145b", "310b", "530b", "1t"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto w = workload::load("megatron-" + names[k]);
    EXPECT_EQ(parameter_count(w), parameter_count(rows[k].workload)) << names[k];
    EXPECT_EQ(w.batch, rows[k].workload.batch) << names[k];
    EXPECT_EQ(w.layers, rows[k].workload.layers) << names[k];
  }
}

TEST(Narayanan2021, TensorTrafficIsSection3_2) {
  const auto all_reduces = paper().at("tensor_traffic").at("all_reduces").get<std::int64_t>();
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const auto& s = model.strategy;
    Traffic layers;
    for (const auto& [key, t] : testing::traffic_of(w, s, Track::native, w.batch)) {
      if (key.axis != "tp" ||
          (!key.purpose.ends_with("_row_output") && !key.purpose.ends_with("_column_input_gradient")))
        continue;
      layers.calls += t.calls;
      layers.wire_bytes += t.wire_bytes;
    }
    // Per device of t: 8 bsh (t-1)/t elements of 4 bytes for each of its layers and microbatches.
    const std::int64_t runs = w.layers * s.microbatches * s.dp, sh = w.sequence * w.hidden;
    EXPECT_EQ(layers.wire_bytes, s.tp == 1 ? 0 : 4 * runs * 8 * sh * (s.tp - 1)) << w.hidden;
    EXPECT_EQ(layers.calls, s.tp == 1 ? 0 : all_reduces * runs * s.tp) << w.hidden;
  }
}

TEST(Narayanan2021, PipelineTrafficIsSection3_2) {
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const auto& s = model.strategy;
    const auto table = testing::traffic_of(w, s, Track::native, w.batch);
    for (const auto* purpose : {"stage_output", "stage_output_gradient"}) {
      if (s.pp == 1) {
        EXPECT_FALSE(table.contains({"pp", "receive", purpose}));
        continue;
      }
      const Traffic received = table.at({"pp", "receive", purpose}), sent = table.at({"pp", "send", purpose});
      const std::int64_t pairs = (s.pp - 1) * s.tp * s.dp;
      EXPECT_EQ(received.calls, pairs * s.microbatches);
      EXPECT_EQ(received.wire_bytes, 4 * pairs * s.microbatches * w.sequence * w.hidden);
      EXPECT_EQ(received.payload_bytes, sent.payload_bytes);
      EXPECT_EQ(received.calls, sent.calls);
      EXPECT_EQ(sent.wire_bytes, 0);
    }
  }
}

// Shoeybi et al. 2019, section 3: the fused output layer and loss exchange b s elements instead of b s v; Megatron-LM
// reduces the maximum, the target's logit and the sum.
TEST(Narayanan2021, TheLossExchangesRowsAndNotLogits) {
  for (const Model& model : models()) {
    const auto& w = model.workload;
    const auto& s = model.strategy;
    if (s.tp == 1) continue;
    const auto table = testing::traffic_of(w, s, Track::native, w.batch);
    for (const auto* purpose : {"logit_max", "target_logit", "logit_sum"})
      EXPECT_EQ((table.at({"tp", "all_reduce", purpose}).payload_bytes), s.tp * w.batch * w.sequence * 4);
  }
}

}  // namespace
}  // namespace shardproof::predict
