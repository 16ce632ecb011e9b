// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/memory.hpp"

#include <random>

#include <gtest/gtest.h>

#include "suites/workload/workload.hpp"

namespace shardproof::predict {
namespace {

using workload::OptimizerKind;
using workload::Workload;

std::int64_t pick(std::mt19937& random, std::initializer_list<std::int64_t> of) {
  return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
}

Workload random_workload(std::mt19937& random) {
  Workload w;
  w.layers = pick(random, {1, 2, 3, 5});
  w.heads = pick(random, {1, 2, 3, 6});
  w.hidden = w.heads * pick(random, {1, 2, 7, 12});
  w.kv_heads = w.heads % 2 == 0 ? pick(random, {w.heads, w.heads / 2, 1}) : pick(random, {w.heads, 1});
  w.mlp_hidden = pick(random, {1, 4 * w.hidden, 13});
  w.vocab = pick(random, {2, 17, 256});
  w.sequence = pick(random, {1, 5, 16});
  w.tied_head = random() % 2 == 0;
  if (w.layers > 2 && random() % 2 == 0) w.shared_block = {0, w.layers - 1};
  if (random() % 2 == 0) w.unused = {0, 1, 7};
  switch (random() % 6) {
    case 0: w.frozen = {"blocks.0.*"}; break;
    case 1: w.frozen = {"*.bias", "token_embedding.weight"}; break;
    case 2: w.frozen = {"blocks.*.attention.*.weight", "unused.*"}; break;
    case 3: w.frozen = {"*norm*", "position_embedding.weight"}; break;
    default: break;
  }
  w.optimizer = static_cast<OptimizerKind>(random() % 4);
  return w;
}

TEST(PredictedMemory, CountsTheParametersOfRandomWorkloads) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const Workload w = random_workload(random);
    std::int64_t all = 0, trainable = 0;
    for (const workload::Parameter& parameter : workload::parameters(w)) {
      all += parameter.elements();
      if (parameter.trainable) trainable += parameter.elements();
    }
    ASSERT_EQ(parameter_count(w), all) << workload::print(w);
    ASSERT_EQ(trainable_count(w), trainable) << workload::print(w);
  }
}

TEST(PredictedMemory, ManyStarsInAPatternTakeNoTime) {
  Workload w = workload::load("tiny");
  w.frozen = {std::string(200, '*') + "bias", std::string("*o*o*o*o*o*o*o*o*o*o*o*o*o*o*o*o*o*o*o*")};
  std::int64_t biases = 0;
  for (const workload::Parameter& parameter : workload::parameters(w))
    if (parameter.name.ends_with("bias")) biases += parameter.elements();
  EXPECT_EQ(parameter_count(w) - trainable_count(w), biases);
}

TEST(PredictedMemory, KnowsThePublishedSizeOfGpt2) {
  // What the released model "gpt2" (Radford et al. 2019) holds, head tied.
  EXPECT_EQ(parameter_count(workload::load("gpt2-124m")), 124'439'808);
}

TEST(PredictedMemory, ChargesGradientsAndStateForTrainableParametersOnly) {
  Workload w;
  w.layers = 1, w.hidden = 2, w.heads = 1, w.kv_heads = 1, w.mlp_hidden = 3, w.vocab = 5, w.sequence = 7;
  w.tied_head = false;
  w.unused = {11};
  // Embeddings 5*2 + 7*2; block: norms 8, query, key, value, output 4*(4+2), up 6+3, down 6+2; final norm 4; head 10.
  constexpr std::int64_t all = 24 + (8 + 24 + 9 + 8) + 4 + 10 + 11;
  const RoleBytes bytes{.activation = 2, .statistic = 4, .mask = 1, .parameter = 2, .gradient = 3, .state = 5};
  EXPECT_EQ(parameter_bytes(w, bytes), 2 * all);
  EXPECT_EQ(gradient_bytes(w, bytes), 3 * all);
  w.frozen = {"head.*", "blocks.0.mlp.up.*"};
  constexpr std::int64_t trainable = all - 10 - 9;
  EXPECT_EQ(parameter_bytes(w, bytes), 2 * all);
  EXPECT_EQ(gradient_bytes(w, bytes), 3 * trainable);
  const std::pair<OptimizerKind, std::int64_t> kinds[] = {
      {OptimizerKind::sgd, 0}, {OptimizerKind::momentum, 1}, {OptimizerKind::adam, 2}, {OptimizerKind::adamw, 2}};
  for (const auto& [kind, tensors] : kinds) {
    w.optimizer = kind;
    EXPECT_EQ(state_bytes(w, bytes), 5 * tensors * trainable);
  }
}

TEST(PredictedMemory, AddsUpTheTableOfSavedTensors) {
  Workload w;
  w.layers = 3, w.hidden = 6, w.heads = 3, w.kv_heads = 1, w.mlp_hidden = 11, w.vocab = 13, w.sequence = 5;
  w.dropout = 0.1;
  const RoleBytes bytes{.activation = 1000, .statistic = 100, .mask = 1, .parameter = 0, .gradient = 0, .state = 0};
  constexpr std::int64_t samples = 2, n = samples * 5, scores = samples * 3 * 25;
  // Row by row, as section 11 lists them.
  constexpr std::int64_t activations =
      n * 6 + n * 6 + (n * 6 + n * 2 + n * 2) + scores + scores + n * 6 + n * 6 + n * 6 + n * 11 + n * 11;
  constexpr std::int64_t masks = scores + n * 6 + n * 6;
  EXPECT_EQ(saved_block_bytes(w, bytes, samples), 1000 * activations + 100 * (4 * n) + masks);
  EXPECT_EQ(saved_embedding_bytes(w, bytes, samples), n * 6);
  EXPECT_EQ(saved_head_bytes(w, bytes, samples), 1000 * (n * 6 + n * 6 + n * 13) + 100 * (4 * n));
  w.dropout = 0;
  EXPECT_EQ(saved_block_bytes(w, bytes, samples), 1000 * (activations - scores) + 100 * (4 * n));
  EXPECT_EQ(saved_embedding_bytes(w, bytes, samples), 0);
  EXPECT_EQ(saved_block_bytes(w, bytes, 0), 0);
}

TEST(PredictedMemory, KeepsTwoStatisticsOfARowOfScoresWhereTiled) {
  Workload w;
  w.layers = 3, w.hidden = 6, w.heads = 3, w.kv_heads = 1, w.mlp_hidden = 11, w.vocab = 13, w.sequence = 5;
  w.dropout = 0.1;
  const RoleBytes bytes{.activation = 1000, .statistic = 100, .mask = 1, .parameter = 0, .gradient = 0, .state = 0};
  constexpr std::int64_t samples = 2, n = samples * 5;
  const auto form = [&](std::int64_t t, std::int64_t rank) {
    return saved_block_bytes(w, holding(w, {.tp = t, .attention = "tiled"}, 0, rank), bytes, samples);
  };
  constexpr std::int64_t activations =
      n * 6 + n * 6 + (n * 6 + n * 2 + n * 2) + n * 6 + n * 6 + n * 6 + n * 11 + n * 11;
  EXPECT_EQ(form(1, 0), 1000 * activations + 100 * (4 * n + 2 * 3 * n) + n * 6 + n * 6);
  w.dropout = 0;
  EXPECT_EQ(form(1, 0), 1000 * activations + 100 * (4 * n + 2 * 3 * n));
  // The second of two ranks: one head of three, five columns of eleven.
  EXPECT_EQ(form(2, 1), 1000 * (4 * n * 6 + 2 * n * 2 + 2 * n * 2 + 2 * n * 5) + 100 * (4 * n + 2 * n));
}

TEST(PredictedMemory, SumsPartsOverTheLargestMicrobatch) {
  Workload w;
  w.layers = 3, w.kv_heads = w.heads, w.dropout = 0.5;
  const RoleBytes bytes = role_bytes(Track::exact);
  const Memory m = memory(w, bytes, 7, 3);  // 3, 2 and 2 samples
  EXPECT_EQ(m.saved,
            saved_embedding_bytes(w, bytes, 3) + 3 * saved_block_bytes(w, bytes, 3) + saved_head_bytes(w, bytes, 3));
  EXPECT_EQ(m.total(), parameter_bytes(w, bytes) + gradient_bytes(w, bytes) + state_bytes(w, bytes) + m.saved);
  EXPECT_EQ(memory(w, bytes, 2, 5).saved, memory(w, bytes, 1, 1).saved);
}

TEST(PredictedMemory, TakesRoleBytesFromTheTrack) {
  EXPECT_EQ(role_bytes(Track::exact).activation, 8);
  EXPECT_EQ(role_bytes(Track::f64).state, 8);
  EXPECT_EQ(role_bytes(Track::native).parameter, 4);
  EXPECT_EQ(role_bytes(Track::native).state, 4);
  EXPECT_EQ(role_bytes(Track::exact).mask, 1);
}

}  // namespace
}  // namespace shardproof::predict
