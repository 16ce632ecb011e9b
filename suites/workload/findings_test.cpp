// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "suites/workload/workload.hpp"

namespace shardproof::workload {
namespace {

/// What is found about tiny after a change.
template <class F>
std::vector<std::string> found(const F& change) {
  Workload w = load("tiny");
  change(w);
  return findings(w);
}
using Texts = std::vector<std::string>;

TEST(Findings, NoneForLegalExtremes) {
  EXPECT_EQ(found([](Workload&) {}), Texts{});
  EXPECT_EQ(found([](Workload& w) {
              w.layers = w.hidden = w.heads = w.kv_heads = w.mlp_hidden = w.vocab = w.sequence = w.batch = w.steps = 1;
              w.dropout = 0.999, w.label_smoothing = std::nextafter(1.0, 0.0);
              w.prompt = 1;
              w.documents = {1};
              w.valid_labels = {0};
              w.unused = {0, 2147483647};
              w.learning_rate = w.beta1 = w.beta2 = w.momentum = w.init_std = 0;
              w.epsilon = w.layer_norm_epsilon = 1e-30;
              w.loss_scale = 0x1p40;
            }),
            Texts{});
}

TEST(Findings, Sizes) {
  EXPECT_EQ(found([](Workload& w) { w.layers = 0; }), Texts{"layers is 0; legal: an integer from 1 to 10000"});
  EXPECT_EQ(found([](Workload& w) { w.heads = 0; }), Texts{"heads is 0; legal: an integer from 1 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.kv_heads = 0; }), Texts{"kv_heads is 0; legal: an integer from 1 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.steps = 0; }), Texts{"steps is 0; legal: an integer from 1 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.batch = -4; }), Texts{"batch is -4; legal: an integer from 1 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.vocab = std::int64_t{1} << 31; }),
            Texts{"vocab is 2147483648; legal: an integer from 1 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.heads = 5, w.kv_heads = 5; }),
            Texts{"heads is 5, which does not divide hidden = 24"});
  EXPECT_EQ(found([](Workload& w) { w.kv_heads = 4; }), Texts{"kv_heads is 4, which does not divide heads = 6"});
  EXPECT_EQ(found([](Workload& w) { w.kv_heads = 12; }), Texts{"kv_heads is 12, which does not divide heads = 6"});
  EXPECT_EQ(found([](Workload& w) {
              w.unused = {3, -1};
            }),
            Texts{"unused is [3, -1]; legal: a list of integers from 0 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.window = -1; }), Texts{"window is -1; legal: an integer from 0 to 2147483647"});
}

TEST(Findings, NumbersMustBeFiniteAndInRange) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(found([&](Workload& w) { w.learning_rate = nan; }),
            Texts{"learning_rate is nan; legal: a finite number from 0 to 1e+30"});
  EXPECT_EQ(found([&](Workload& w) { w.learning_rate = infinity; }),
            Texts{"learning_rate is inf; legal: a finite number from 0 to 1e+30"});
  EXPECT_EQ(found([&](Workload& w) { w.learning_rate = -1e-3; }),
            Texts{"learning_rate is -0.001; legal: a finite number from 0 to 1e+30"});
  EXPECT_EQ(found([&](Workload& w) { w.dropout = 1; }), Texts{"dropout is 1; legal: a finite number from 0 to 0.999"});
  EXPECT_EQ(found([&](Workload& w) { w.dropout = nan; }),
            Texts{"dropout is nan; legal: a finite number from 0 to 0.999"});
  EXPECT_EQ(found([&](Workload& w) { w.label_smoothing = 1; }),
            Texts{"label_smoothing is 1; legal: a finite number >= 0 and < 1"});
  EXPECT_EQ(found([&](Workload& w) { w.label_smoothing = -0.1; }),
            Texts{"label_smoothing is -0.1; legal: a finite number >= 0 and < 1"});
  EXPECT_EQ(
      found([&](Workload& w) { w.beta1 = w.beta2 = w.momentum = 1; }),
      (Texts{"momentum is 1; legal: a finite number >= 0 and < 1", "beta1 is 1; legal: a finite number >= 0 and < 1",
             "beta2 is 1; legal: a finite number >= 0 and < 1"}));
  EXPECT_EQ(found([&](Workload& w) { w.epsilon = 0; }),
            Texts{"epsilon is 0; legal: a finite number from 1e-30 to 1e+30"});
  EXPECT_EQ(found([&](Workload& w) { w.layer_norm_epsilon = 0; }),
            Texts{"layer_norm_epsilon is 0; legal: a finite number from 1e-30 to 1e+30"});
  EXPECT_EQ(found([&](Workload& w) { w.clip = -1; }), Texts{"clip is -1; legal: a finite number from 0 to 1e+30"});
  EXPECT_EQ(found([&](Workload& w) { w.init_std = 1001; }),
            Texts{"init_std is 1001; legal: a finite number from 0 to 1000"});
}

TEST(Findings, LossScaleIsAPowerOfTwo) {
  for (double bad : {3.0, 65535.0, 1.5}) {
    const auto texts = found([&](Workload& w) { w.loss_scale = bad; });
    ASSERT_EQ(texts.size(), 1u) << bad;
    EXPECT_TRUE(texts[0].ends_with("; legal: a power of two")) << texts[0];
  }
  EXPECT_EQ(found([](Workload& w) { w.loss_scale = 0.5; }),
            Texts{"loss_scale is 0.5; legal: a finite number from 1 to 1099511627776"});
}

TEST(Findings, SharedBlock) {
  for (const std::vector<std::int64_t>& bad : {std::vector<std::int64_t>{0}, {0, 1, 1}, {1, 0}, {1, 1}, {0, 2}}) {
    const auto texts = found([&](Workload& w) { w.shared_block = bad; });
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_TRUE(texts[0].ends_with("; legal: [] or [p, q] with p < q < layers = 2")) << texts[0];
  }
  EXPECT_EQ(found([](Workload& w) {
              w.shared_block = {-1, 1};
            }),
            Texts{"shared_block is [-1, 1]; legal: a list of integers from 0 to 10000"});
  EXPECT_EQ(found([](Workload& w) { w.shared_block = {0, 1}; }), Texts{});
}

TEST(Findings, Data) {
  EXPECT_EQ(found([](Workload& w) { w.documents = {4, 6}; }), Texts{"documents add up to 10, more than sequence = 9"});
  EXPECT_EQ(found([](Workload& w) {
              w.documents = {4, 0};
            }),
            Texts{"documents is [4, 0]; legal: a list of integers from 1 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) {
              w.valid_labels = {2, -7};
            }),
            Texts{"valid_labels is [2, -7]; legal: a list of integers from 0 to 2147483647"});
  EXPECT_EQ(found([](Workload& w) { w.prompt = 10; }), Texts{"prompt is 10, more than sequence = 9"});
  EXPECT_EQ(found([](Workload& w) { w.corpus = ""; }),
            Texts{"corpus is \"\"; legal: a text that is not empty and has no control characters"});
  EXPECT_EQ(found([](Workload& w) { w.name = "a\nb"; }),
            Texts{"name is \"a\\nb\"; legal: a text that is not empty and has no control characters"});
}

TEST(Findings, WhatHasNoEffect) {
  EXPECT_EQ(found([](Workload& w) { w.weight_decay = 0.1; }),
            Texts{"weight_decay is 0.1, which has no effect: optimizer is adam, and only adamw decays"});
  EXPECT_EQ(found([](Workload& w) { w.weight_decay = 0.1, w.optimizer = OptimizerKind::adamw; }), Texts{});
  EXPECT_EQ(found([](Workload& w) { w.minimum_learning_rate = 1e-4; }),
            Texts{"minimum_learning_rate is 0.0001, which has no effect: learning_rate_schedule is constant"});
}

TEST(Findings, Frozen) {
  EXPECT_EQ(found([](Workload& w) {
              w.frozen = {"tokn_embedding.weight", "*.bias", "blocks.2.*"};
            }),
            (Texts{"frozen: \"tokn_embedding.weight\" matches no parameter; the nearest is \"token_embedding.weight\"",
                   "frozen: \"blocks.2.*\" matches no parameter; the nearest is \"blocks.0.norm2.bias\""}));
  EXPECT_EQ(found([](Workload& w) { w.frozen = {"*"}; }), Texts{"frozen leaves no parameter to train"});
  // The head's weight is its own only when it is not tied; layer 1 has parameters only when it shares none.
  EXPECT_EQ(found([](Workload& w) { w.frozen = {"head.weight"}; }).size(), 1u);
  EXPECT_EQ(found([](Workload& w) { w.frozen = {"head.weight"}, w.tied_head = false; }), Texts{});
  EXPECT_EQ(found([](Workload& w) { w.frozen = {"blocks.1.*"}, w.shared_block = {0, 1}; }).size(), 1u);
}

/// The finding's first words tell the bounds apart.
TEST(Findings, ProductsOfSizesAreBounded) {
  constexpr std::int64_t largest = 2147483647;
  const auto first_words = [](const Texts& texts) {
    Texts words;
    for (const std::string& text : texts) words.push_back(text.substr(0, text.find(' ')));
    return words;
  };
  EXPECT_EQ(first_words(found([](Workload& w) { w.sequence = largest; })), Texts{"attention"});
  EXPECT_EQ(first_words(found([](Workload& w) { w.batch = w.vocab = largest; })), Texts{"activations"});
  EXPECT_EQ(first_words(found([](Workload& w) { w.layers = 10000, w.hidden = 3 << 22, w.mlp_hidden = largest; })),
            Texts{"parameters"});
  EXPECT_EQ(found([](Workload& w) { w.vocab = largest, w.hidden = 3 << 22, w.batch = 1; }), Texts{});
}

}  // namespace
}  // namespace shardproof::workload
