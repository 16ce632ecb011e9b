// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/random_workload.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "kernels/core/philox.hpp"
#include "suites/workload/batch.hpp"

namespace shardproof::workload {
namespace {

class Draw {
 public:
  Draw(std::uint64_t seed, std::int64_t index, int attempt)
      : stream_(seed, fmt::format("random_workload.{}.{}", index, attempt)) {}

  std::int64_t from(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>((static_cast<std::uint64_t>(high - low + 1) * stream_.word(next_++)) >> 32);
  }
  bool chance(double probability) { return stream_.uniform(next_++) < probability; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[from(0, static_cast<std::int64_t>(values.size()) - 1)];
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

void draw_shape(Draw& draw, Workload& w) {
  w.layers = draw.from(1, 4);
  w.heads = draw.pick<std::int64_t>({1, 2, 3, 4, 6});
  w.hidden = w.heads * draw.from(1, 6);
  do {
    w.kv_heads = draw.from(1, w.heads);
  } while (w.heads % w.kv_heads != 0);
  w.mlp_hidden = draw.pick<std::int64_t>({1, 7, 13, 37, 41, 4 * w.hidden});
  w.vocab = draw.pick<std::int64_t>({2, 3, 5, 11, 16, 29, 67});
  w.sequence = draw.pick<std::int64_t>({1, 2, 3, 5, 7, 9, 13, 17});
  w.batch = draw.from(1, 6);
}

void draw_model(Draw& draw, Workload& w) {
  w.activation = draw.pick({Activation::gelu, Activation::relu});
  w.tied_head = draw.chance(0.5);
  if (w.layers > 1 && draw.chance(0.5)) {
    const std::int64_t q = draw.from(1, w.layers - 1);
    w.shared_block = {draw.from(0, q - 1), q};
  }
  w.layer_norm_epsilon = draw.pick({1e-5, 1e-5, 1e-3});
  if (draw.chance(0.4)) w.dropout = draw.pick({0.1, 0.2, 0.5, 0.9});
  // A position whose features are all dropped has variance 0: layer after layer a norm multiplies gradients by
  // 1/sqrt(epsilon), soon beyond the range of Q23.40.
  if (w.dropout == 0.9) w.layer_norm_epsilon = 0.1;
  if (draw.chance(0.4)) w.label_smoothing = draw.pick({0.05, 0.1, 0.5});
  if (draw.chance(0.4)) w.window = draw.from(1, w.sequence);
  if (draw.chance(0.4)) {
    for (std::int64_t k = draw.from(1, 4); k > 0; --k) w.unused.push_back(draw.pick<std::int64_t>({0, 1, 7, 13}));
  }
  if (draw.chance(0.4)) {
    for (std::int64_t k = draw.from(1, 2); k > 0; --k) {
      w.frozen.push_back(
          draw.pick({"token_embedding.weight", "position_embedding.weight", "blocks.0.*", "*.bias", "*norm*",
                     "blocks.*.attention.key.*", "blocks.*.mlp.down.weight", "final_norm.weight"}));
    }
  }
  // Of one feature a norm leaves its bias alone: with that frozen no parameter would have a gradient.
  if (w.hidden == 1) w.frozen.clear();
  w.initialization = draw.chance(0.75) ? Initialization::hostile : Initialization::gpt2;
  w.init_std = draw.pick({0.02, 0.2});
}

void draw_data(Draw& draw, Workload& w) {
  w.seed =
      static_cast<std::uint64_t>(draw.from(0, 0xffffffff)) << 32 | static_cast<std::uint64_t>(draw.from(0, 0xffffffff));
  // A sequence of one position would have no label left.
  if (w.sequence > 1 && draw.chance(0.5)) {
    std::int64_t left = w.sequence;
    do {
      w.documents.push_back(draw.from(1, left));
      left -= w.documents.back();
    } while (left > 0 && draw.chance(0.6));
  }
  if (draw.chance(0.4)) {
    for (std::int64_t k = draw.from(1, 4); k > 0; --k)
      w.valid_labels.push_back(draw.pick<std::int64_t>({0, 1, 2, 7, 7}));
  }
  if (w.sequence > 1 && draw.chance(0.4)) w.prompt = draw.from(1, draw.chance(0.1) ? w.sequence : w.sequence / 2);
  if (draw.chance(0.4)) w.samples = draw.from(1, 2 * w.batch);
  // The short last batch of an epoch without a label, between others.
  if (draw.chance(0.05)) w.batch = 2, w.samples = 3, w.valid_labels = {0, 7};
}

void draw_training(Draw& draw, Workload& w) {
  w.steps = 3;
  w.optimizer = draw.pick({OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adam, OptimizerKind::adamw});
  const bool adam = w.optimizer == OptimizerKind::adam || w.optimizer == OptimizerKind::adamw;
  w.learning_rate = adam ? draw.pick({1e-3, 1e-2}) : draw.pick({0.01, 0.1, 0.5});
  w.learning_rate_schedule = draw.pick({RateSchedule::constant, RateSchedule::linear, RateSchedule::cosine});
  w.warmup_steps = draw.pick<std::int64_t>({0, 0, 1, 2, 5});
  if (w.learning_rate_schedule != RateSchedule::constant && draw.chance(0.5)) {
    w.minimum_learning_rate = w.learning_rate * 0.125;
  }
  w.momentum = draw.pick({0.0, 0.5, 0.9});
  w.beta1 = draw.pick({0.0, 0.9, 0.9});
  w.beta2 = draw.pick({0.5, 0.95, 0.999});
  w.epsilon = draw.pick({1e-8, 1e-6});
  if (w.optimizer == OptimizerKind::adamw && draw.chance(0.8)) w.weight_decay = draw.pick({0.01, 0.1});
  w.decay_group = draw.pick({DecayGroup::matrices, DecayGroup::all, DecayGroup::none});
  // 1e-3 binds at nearly every step, 1000 at none, the others at some.
  if (draw.chance(0.6)) w.clip = draw.pick({1e-3, 0.5, 2.0, 1000.0});
  w.loss_scale = draw.pick({1.0, 0x1p8, 0x1p12, 0x1p16, 0x1p16, 0x1p16, 0x1p18});
}

bool has_label(const Workload& w) {
  const Corpus corpus(w);
  for (std::int64_t step = 1; step <= w.steps; ++step)
    if (batch(w, corpus, step).label_count > 0) return true;
  return false;
}

}  // namespace

Workload random_workload(std::uint64_t seed, std::int64_t index) {
  for (int attempt = 0;; ++attempt) {
    Draw draw(seed, index, attempt);
    Workload workload;
    workload.name = fmt::format("random:{}:{}", seed, index);
    draw_shape(draw, workload);
    draw_model(draw, workload);
    draw_data(draw, workload);
    draw_training(draw, workload);
    if (has_label(workload)) return workload;
  }
}

}  // namespace shardproof::workload
