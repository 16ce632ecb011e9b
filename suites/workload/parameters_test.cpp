// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "suites/workload/workload.hpp"

namespace shardproof::workload {
namespace {

using Settings = std::vector<std::string>;

std::vector<std::string> names(const Workload& w) {
  std::vector<std::string> list;
  for (const Parameter& parameter : parameters(w)) list.push_back(parameter.name);
  return list;
}

Parameter named(const Workload& w, const std::string& name) {
  for (const Parameter& parameter : parameters(w)) {
    if (parameter.name == name) return parameter;
  }
  ADD_FAILURE() << name << " is missing";
  return {};
}

const std::vector<std::string> block{"norm1.weight",           "norm1.bias",           "attention.query.weight",
                                     "attention.query.bias",   "attention.key.weight", "attention.key.bias",
                                     "attention.value.weight", "attention.value.bias", "attention.output.weight",
                                     "attention.output.bias",  "norm2.weight",         "norm2.bias",
                                     "mlp.up.weight",          "mlp.up.bias",          "mlp.down.weight",
                                     "mlp.down.bias"};

std::vector<std::string> expected(const std::vector<int>& layers, const std::vector<std::string>& rest) {
  std::vector<std::string> list{"token_embedding.weight", "position_embedding.weight"};
  for (int layer : layers) {
    for (const std::string& name : block) list.push_back("blocks." + std::to_string(layer) + "." + name);
  }
  list.insert(list.end(), {"final_norm.weight", "final_norm.bias"});
  list.insert(list.end(), rest.begin(), rest.end());
  return list;
}

TEST(Parameters, NamesInTheDefinitionsOrder) {
  EXPECT_EQ(names(load("tiny")), expected({0, 1}, {}));
  EXPECT_EQ(names(load("tiny", Settings{"tied_head=false", "unused=3,0"})),
            expected({0, 1}, {"head.weight", "unused.0", "unused.1"}));
  const Workload shared = load("tiny", Settings{"layers=4", "shared_block=1,2"});
  EXPECT_EQ(names(shared), expected({0, 1, 3}, {}));
  EXPECT_EQ(parameter_layer(shared, 0), 0);
  EXPECT_EQ(parameter_layer(shared, 1), 1);
  EXPECT_EQ(parameter_layer(shared, 2), 1);
  EXPECT_EQ(parameter_layer(shared, 3), 3);
}

TEST(Parameters, Dims) {
  const Workload w = load("tiny", Settings{"tied_head=false", "unused=7,0"});
  const auto dims = [&](const std::string& name) { return named(w, name).dims; };
  EXPECT_EQ(dims("token_embedding.weight"), (Dims{29, 24}));
  EXPECT_EQ(dims("position_embedding.weight"), (Dims{9, 24}));
  EXPECT_EQ(dims("blocks.0.norm1.weight"), Dims{24});
  EXPECT_EQ(dims("blocks.0.attention.query.weight"), (Dims{24, 24}));
  EXPECT_EQ(dims("blocks.0.attention.key.weight"), (Dims{12, 24}));
  EXPECT_EQ(dims("blocks.0.attention.key.bias"), Dims{12});
  EXPECT_EQ(dims("blocks.1.attention.value.weight"), (Dims{12, 24}));
  EXPECT_EQ(dims("blocks.1.attention.output.weight"), (Dims{24, 24}));
  EXPECT_EQ(dims("blocks.1.mlp.up.weight"), (Dims{37, 24}));
  EXPECT_EQ(dims("blocks.1.mlp.up.bias"), Dims{37});
  EXPECT_EQ(dims("blocks.1.mlp.down.weight"), (Dims{24, 37}));
  EXPECT_EQ(dims("blocks.1.mlp.down.bias"), Dims{24});
  EXPECT_EQ(dims("final_norm.bias"), Dims{24});
  EXPECT_EQ(dims("head.weight"), (Dims{29, 24}));
  EXPECT_EQ(dims("unused.0"), Dims{7});
  EXPECT_EQ(named(w, "unused.1").elements(), 0);
}

TEST(Parameters, Gpt2SmallHasItsPublishedSize) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters(load("gpt2-124m"))) total += parameter.elements();
  EXPECT_EQ(total, 124439808);
}

TEST(Parameters, DecayGroups) {
  const Settings common{"unused=3", "optimizer=adamw", "weight_decay=0.1"};
  const auto decaying = [&](const std::string& group) {
    Settings settings = common;
    settings.push_back("decay_group=" + group);
    std::set<std::string> list;
    for (const Parameter& parameter : parameters(load("tiny", settings))) {
      if (parameter.decays) list.insert(parameter.name);
    }
    return list;
  };
  EXPECT_TRUE(decaying("none").empty());
  const auto all = decaying("all");
  EXPECT_FALSE(all.contains("unused.0"));  // ARITHMETIC.md, section 4: never
  EXPECT_EQ(all.size() + 1, names(load("tiny", common)).size());
  std::set<std::string> matrices{"token_embedding.weight", "position_embedding.weight"};
  for (const char* layer : {"blocks.0.", "blocks.1."}) {
    for (const char* map :
         {"attention.query", "attention.key", "attention.value", "attention.output", "mlp.up", "mlp.down"}) {
      matrices.insert(std::string(layer) + map + ".weight");
    }
  }
  EXPECT_EQ(decaying("matrices"), matrices);
}

TEST(Parameters, FrozenByPattern) {
  const Workload w = load("tiny", Settings{"frozen=blocks.1.*.bias,token_embedding.weight"});
  for (const Parameter& parameter : parameters(w)) {
    const bool frozen = parameter.name == "token_embedding.weight" ||
                        (parameter.name.starts_with("blocks.1.") && parameter.name.ends_with(".bias"));
    EXPECT_EQ(parameter.trainable, !frozen) << parameter.name;
  }
}

struct Statistics {
  double mean, deviation, smallest, largest;
};
Statistics statistics(const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double square = 0;
  for (double v : x) square += (v - mean) * (v - mean);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return {mean, std::sqrt(square / n), *low, *high};
}

TEST(InitialValues, LieOnTheGrid) {
  for (const char* name : {"tiny", "w02"}) {
    for (const char* kind : {"initialization=gpt2", "initialization=hostile"}) {
      const Workload w = load(name, Settings{kind});
      for (const Parameter& parameter : parameters(w)) {
        const auto values = initial_values(w, parameter);
        ASSERT_EQ(static_cast<std::int64_t>(values.size()), parameter.elements());
        for (double v : values) {
          EXPECT_EQ(v * 0x1p40, std::rint(v * 0x1p40)) << parameter.name;
          EXPECT_FALSE(v == 0 && std::signbit(v)) << parameter.name;
        }
      }
    }
  }
}

TEST(InitialValues, Gpt2) {
  const Workload w = load("laptop");
  const auto values = [&](const std::string& name) { return initial_values(w, named(w, name)); };
  for (double v : values("blocks.3.mlp.up.bias")) EXPECT_EQ(v, 0);
  for (double v : values("final_norm.bias")) EXPECT_EQ(v, 0);
  for (double v : values("blocks.0.norm2.weight")) EXPECT_EQ(v, 1);
  // Uniform on (-a, a), a = sqrt(3) std. Standard errors: std/sqrt(n) of the mean, and of the deviation
  // std sqrt((kurtosis - 1)/4n) with a uniform's kurtosis 9/5.
  const auto expect = [&](const std::string& name, double deviation) {
    const auto x = values(name);
    const auto n = static_cast<double>(x.size());
    const Statistics s = statistics(x);
    EXPECT_NEAR(s.mean, 0, 5 * deviation / std::sqrt(n)) << name;
    EXPECT_NEAR(s.deviation, deviation, 5 * deviation * std::sqrt(0.2 / n)) << name;
    EXPECT_LE(s.largest, std::sqrt(3.0) * deviation + 0x1p-41);
    EXPECT_GE(s.smallest, -std::sqrt(3.0) * deviation - 0x1p-41);
  };
  expect("token_embedding.weight", 0.02);
  expect("blocks.0.attention.query.weight", 0.02);
  expect("blocks.5.mlp.up.weight", 0.02);
  expect("blocks.0.attention.output.weight", 0.02 / std::sqrt(12.0));
  expect("blocks.5.mlp.down.weight", 0.02 / std::sqrt(12.0));
  EXPECT_NE(values("blocks.0.mlp.up.weight"), values("blocks.1.mlp.up.weight"));
}

TEST(InitialValues, HostileLeavesNothingTrivial) {
  const Workload w = load("tiny", Settings{"tied_head=false", "unused=7"});
  for (const Parameter& parameter : parameters(w)) {
    const auto x = initial_values(w, parameter);
    const std::set<double> distinct(x.begin(), x.end());
    EXPECT_GE(distinct.size() + 1, x.size()) << parameter.name;
    const Statistics s = statistics(x);
    const bool norm = parameter.name.find("norm") != std::string::npos;
    if (parameter.name.ends_with(".bias")) {
      for (double v : x) EXPECT_TRUE(std::fabs(v) >= 0.05 && std::fabs(v) <= 0.25) << parameter.name;
      EXPECT_LT(s.smallest, 0) << parameter.name;
      EXPECT_GT(s.largest, 0) << parameter.name;
    } else if (norm) {
      EXPECT_GE(s.smallest, 0.6);
      EXPECT_LE(s.largest, 1.4);
      EXPECT_GT(s.deviation, 0.1);
    } else {
      EXPECT_LE(std::max(-s.smallest, s.largest), 1.5 / std::sqrt(static_cast<double>(parameter.dims.back())))
          << parameter.name;
      EXPECT_GT(s.deviation, 0.1) << parameter.name;
    }
  }
}

/// Raw values of Q23.40, computed from the definitions by a program apart from this code.
TEST(InitialValues, FirstOfTiny) {
  const Workload w = load("tiny");
  const auto raw = [&](const std::string& name) {
    const auto values = initial_values(w, named(w, name));
    return std::vector<std::int64_t>{std::llrint(values[0] * 0x1p40), std::llrint(values[1] * 0x1p40),
                                     std::llrint(values[2] * 0x1p40)};
  };
  EXPECT_EQ(raw("token_embedding.weight"), (std::vector<std::int64_t>{15420404149, 143801897020, 198580162685}));
  EXPECT_EQ(raw("blocks.0.norm1.weight"), (std::vector<std::int64_t>{962376698778, 1176513104384, 1247636519834}));
  EXPECT_EQ(raw("blocks.0.norm1.bias"), (std::vector<std::int64_t>{-109581891738, 169016137984, -132530584115}));
}

TEST(InitialValues, FollowSeedAndNameOnly) {
  const Workload w = load("tiny"), other = load("tiny", Settings{"seed=2"}),
                 larger = load("tiny", Settings{"layers=3"});
  const Parameter parameter = named(w, "blocks.1.attention.key.weight");
  EXPECT_EQ(initial_values(w, parameter), initial_values(larger, parameter));
  EXPECT_NE(initial_values(w, parameter), initial_values(other, parameter));
}

Workload schedule(const std::string& kind) {
  return load("tiny", Settings{"learning_rate=0.5", "warmup_steps=4", "steps=12", "learning_rate_schedule=" + kind});
}

TEST(LearningRate, Constant) {
  const Workload w = schedule("constant");
  EXPECT_EQ(learning_rate(w, 1), 0.125);
  EXPECT_EQ(learning_rate(w, 3), 0.375);
  for (std::int64_t t : {4, 5, 12, 13, 1000}) EXPECT_EQ(learning_rate(w, t), 0.5);
  EXPECT_EQ(learning_rate(load("tiny", Settings{"learning_rate=0.5"}), 1), 0.5);
}

TEST(LearningRate, Linear) {
  Workload w = schedule("linear");
  w.minimum_learning_rate = 0.25;
  EXPECT_EQ(learning_rate(w, 2), 0.25);
  EXPECT_EQ(learning_rate(w, 4), 0.5);
  EXPECT_EQ(learning_rate(w, 6), 0.4375);
  EXPECT_EQ(learning_rate(w, 8), 0.375);
  EXPECT_EQ(learning_rate(w, 12), 0.25);
  EXPECT_EQ(learning_rate(w, 20), 0.25);
}

TEST(LearningRate, Cosine) {
  Workload w = schedule("cosine");
  w.minimum_learning_rate = 0.25;
  EXPECT_EQ(learning_rate(w, 1), 0.125);
  EXPECT_EQ(learning_rate(w, 4), 0.5);
  EXPECT_NEAR(learning_rate(w, 6), 0.25 + 0.125 * (1 + std::sqrt(0.5)), 1e-15);
  EXPECT_NEAR(learning_rate(w, 8), 0.375, 1e-15);
  EXPECT_NEAR(learning_rate(w, 10), 0.25 + 0.125 * (1 - std::sqrt(0.5)), 1e-15);
  EXPECT_NEAR(learning_rate(w, 12), 0.25, 1e-15);
  EXPECT_EQ(learning_rate(w, 13), learning_rate(w, 12));
}

TEST(LearningRate, WarmupLongerThanTheRun) {
  const Workload w =
      load("tiny", Settings{"learning_rate=1", "warmup_steps=8", "steps=3", "learning_rate_schedule=linear"});
  EXPECT_EQ(learning_rate(w, 3), 0.375);
  EXPECT_EQ(learning_rate(w, 8), 1);
  EXPECT_EQ(learning_rate(w, 9), 0);
}

}  // namespace
}  // namespace shardproof::workload
