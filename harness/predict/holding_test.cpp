// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/holding.hpp"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "harness/predict/testing.hpp"
#include "impl/plan/layout.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::predict {
namespace {

using workload::Workload;

auto fields(const Count& c) { return std::tuple(c.elements, c.tensors, c.trainable_elements, c.trainable_tensors); }

// The layout names every parameter and its ranges; the forms know sizes alone.
Count held_by(const plan::Layout& layout, std::int64_t stage, std::int64_t t) {
  Count sum;
  for (const auto& p : layout.parameters) {
    const auto stages = p.stages();
    if (std::ranges::find(stages, stage) == stages.end()) continue;
    const std::int64_t elements = elements_of(p.held_dims(t));
    sum.elements += elements, ++sum.tensors;
    if (p.parameter.trainable) sum.trainable_elements += elements, ++sum.trainable_tensors;
  }
  return sum;
}

void expect_layout(const Workload& w, const plan::Strategy& s) {
  SCOPED_TRACE(plan::print(s) + "\n" + workload::print(w));
  const plan::Layout layout = plan::layout(w, s);
  ASSERT_EQ(shares_key_heads(w, s), layout.shares_key_heads());
  for (std::int64_t stage = 0; stage < schedule_shape(s).stages(); ++stage) {
    for (std::int64_t t = 0; t < s.tp; ++t) {
      const Holding o = holding(w, s, stage, t);
      const auto& heads = layout.heads[static_cast<std::size_t>(t)];
      ASSERT_EQ(o.layers, layout.stage_layers[static_cast<std::size_t>(stage)]);
      ASSERT_EQ(o.a, heads.query.size());
      ASSERT_EQ(o.q, heads.query.size() * w.head_size());
      ASSERT_EQ(o.k, heads.key.size() * w.head_size());
      ASSERT_EQ(o.k_owned, heads.owned.size() * w.head_size());
      ASSERT_EQ(o.m, layout.mlp[static_cast<std::size_t>(t)].size());
      ASSERT_EQ(o.v, layout.vocab[static_cast<std::size_t>(t)].size());
      ASSERT_EQ(fields(count(w, o)), fields(held_by(layout, stage, t)));
      for (std::int64_t layer = o.layers.begin; layer < o.layers.end; ++layer) ASSERT_EQ(stage_of(w, s, layer), stage);
    }
  }
}

TEST(Holding, IsTheLayoutsOnRandomWorkloads) {
  std::mt19937 random(3);
  for (std::int64_t i = 0; i < 400; ++i) {
    const Workload w = workload::random_workload(11, i);
    expect_layout(w, testing::random_strategy(random, w));
  }
}

TEST(Holding, IsTheLayoutsForEveryCutOfHeads) {
  Workload w = workload::random_workload(11, 0);
  w.frozen.clear();
  for (w.heads = 1; w.heads <= 12; ++w.heads) {
    w.hidden = 3 * w.heads;
    for (w.kv_heads = 1; w.kv_heads <= w.heads; ++w.kv_heads) {
      if (w.heads % w.kv_heads != 0) continue;
      for (const std::int64_t tp : {1, 2, 3, 5, 7, 13}) expect_layout(w, {.pp = 2, .tp = tp});
    }
  }
}

Workload small() {
  Workload w;
  w.layers = 3, w.hidden = 6, w.heads = 3, w.kv_heads = 1, w.mlp_hidden = 11, w.vocab = 13, w.sequence = 5;
  return w;
}

TEST(Holding, HasCopiesWhereAParameterIsUsedTwice) {
  Workload w = small();
  w.unused = {4};
  w.shared_block = {0, 2};
  const plan::Strategy s{.pp = 3, .tp = 2, .layers = {1, 1, 1}};
  // Tensor rank 0 of 2: heads 0 and 1, the key head, 6 columns, 7 rows of the vocabulary. Norms, query, key and value,
  // output, up, down:
  constexpr std::int64_t block = 4 * 6 + (4 * 6 + 4) + 2 * (2 * 6 + 2) + (6 * 4 + 6) + (6 * 6 + 6) + (6 * 6 + 6);
  EXPECT_EQ(count(w, holding(w, s, 0, 0)).elements, 7 * 6 + 5 * 6 + 4 + block);
  EXPECT_EQ(count(w, holding(w, s, 1, 0)).elements, block);
  EXPECT_EQ(count(w, holding(w, s, 2, 0)).elements, block + 2 * 6 + 7 * 6);
  // One stage holds both once.
  EXPECT_EQ(count(w, holding(w, {.tp = 2}, 0, 0)).elements, 7 * 6 + 5 * 6 + 4 + 2 * block + 2 * 6);
  w.frozen = {"blocks.0.mlp.*", "token_embedding.weight"};
  EXPECT_EQ(count(w, holding(w, s, 2, 0)).trainable_elements, block - 2 * (6 * 6 + 6) + 2 * 6);
  EXPECT_EQ(count(w, holding(w, s, 2, 0)).trainable_tensors, 12 + 2);
}

TEST(Holding, KnowsWhereACutFallsInsideAGroup) {
  Workload w = small();
  w.heads = 6, w.kv_heads = 2;
  EXPECT_FALSE(shares_key_heads(w, {.tp = 1}));
  EXPECT_FALSE(shares_key_heads(w, {.tp = 2}));
  EXPECT_TRUE(shares_key_heads(w, {.tp = 3}));
  w.kv_heads = 6;
  EXPECT_FALSE(shares_key_heads(w, {.tp = 4}));
  w.kv_heads = 1;
  EXPECT_TRUE(shares_key_heads(w, {.tp = 9}));
}

}  // namespace
}  // namespace shardproof::predict
