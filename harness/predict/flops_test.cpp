// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/flops.hpp"

#include <gtest/gtest.h>

#include "suites/workload/workload.hpp"

namespace shardproof::predict {
namespace {

using workload::Workload;

Workload small() {
  Workload w;
  w.layers = 2, w.hidden = 6, w.heads = 3, w.kv_heads = 1, w.mlp_hidden = 11, w.vocab = 13, w.sequence = 5;
  return w;
}

// Of a linear map [out, in] over `samples` sequences of 5, forward.
double linear(double samples, double out, double in) { return 2 * samples * 5 * out * in; }

TEST(PredictedFlops, AddUpMapByMap) {
  const Flops f = flops(small(), 4);
  const double block =
      linear(4, 6, 6) + linear(4, 2, 6) + linear(4, 2, 6) + linear(4, 6, 6) + linear(4, 11, 6) + linear(4, 6, 11);
  const double attention = 2 * 4 * 5 * 5 * 6;  // one product over all heads: samples * T^2 * heads * head_size
  const double head = linear(4, 13, 6);
  EXPECT_EQ(f.forward, 2 * (block + 2 * attention) + head);
  EXPECT_EQ(f.backward_input, 2 * (block + 4 * attention) + head);
  EXPECT_EQ(f.backward_weight, 2 * block + head);
}

TEST(PredictedFlops, CountScoresThatTiledAttentionMakesAgain) {
  const Holding tiled = holding(small(), {.attention = "tiled"}, 0, 0);
  const Flops stored = flops(small(), 4), f = flops(small(), tiled, 4);
  const double scores = 2 * (2 * 4 * 5 * 5 * 6);  // of two layers
  EXPECT_EQ(f.total(), stored.total());
  EXPECT_EQ(f.hardware(Track::native), stored.total() + scores);
  EXPECT_EQ(f.hardware(Track::f64), stored.total() + scores);
  EXPECT_EQ(f.hardware(Track::exact), stored.total() + 2 * scores);
  for (const auto track : {Track::exact, Track::f64, Track::native}) EXPECT_EQ(stored.hardware(track), stored.total());
}

TEST(PredictedFlops, LeaveOutTheGradientsOfFrozenWeights) {
  Workload w = small();
  w.frozen = {"blocks.1.mlp.*", "token_embedding.weight", "*.bias", "*norm*"};
  const Flops all = flops(small(), 4), f = flops(w, 4);
  EXPECT_EQ(f.forward, all.forward);
  EXPECT_EQ(f.backward_input, all.backward_input);
  EXPECT_EQ(all.backward_weight - f.backward_weight, 2 * linear(4, 11, 6) + linear(4, 13, 6));
}

TEST(PredictedFlops, CountASharedBlockAtBothSites) {
  Workload w = small();
  w.shared_block = {0, 1};
  EXPECT_EQ(flops(w, 4).total(), flops(small(), 4).total());
  w.frozen = {"blocks.0.attention.query.weight"};
  EXPECT_EQ(flops(small(), 4).total() - flops(w, 4).total(), 2 * linear(4, 6, 6));
}

TEST(PredictedFlops, AreEquation7WhereAllHeadsAreFullAndTheMlpIsFourTimesAsWide) {
  Workload w = small();
  w.kv_heads = 3, w.mlp_hidden = 24;
  EXPECT_TRUE(is_equation_7(w));
  EXPECT_TRUE(is_equation_7(workload::load("megatron-1t")));
  const auto but = [&](auto change) {
    Workload other = w;
    change(other);
    return is_equation_7(other);
  };
  EXPECT_FALSE(but([](Workload& o) { o.kv_heads = 1; }));
  EXPECT_FALSE(but([](Workload& o) { o.mlp_hidden = 25; }));
  EXPECT_FALSE(but([](Workload& o) { o.frozen = {"blocks.1.attention.key.weight"}; }));
  EXPECT_TRUE(but([](Workload& o) { o.frozen = {"*.bias"}; }));
  EXPECT_TRUE(but([](Workload& o) { o.tied_head = false, o.shared_block = {0, 1}, o.unused = {7}; }));
}

TEST(PredictedFlops, AreNoneWithoutSamples) { EXPECT_EQ(flops(small(), 0).total(), 0); }

}  // namespace
}  // namespace shardproof::predict
