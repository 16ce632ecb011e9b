// SPDX-License-Identifier: Apache-2.0
// The engine against the oracle on one device. The long list of workloads is `shardproof check --suite one_device`.
#include "impl/engine/trainer.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "reference/oracle.hpp"

namespace shardproof::engine {
namespace {

workload::Workload tiny(std::vector<std::string> settings = {}) { return workload::load("tiny", settings); }

/// Digests of `steps` steps of both, so that one failing step names itself.
void expect_same_bits(const workload::Workload& w, TrainerOptions options, std::int64_t steps) {
  Device device;
  ImmediateQueue queue(device);
  Trainer trainer(queue, w, Track::exact, options);
  const auto oracle = reference::make_oracle(w, Track::exact);
  const workload::Corpus corpus(w);
  for (std::int64_t t = 1; t <= steps; ++t) {
    const auto batch = workload::batch(w, corpus, t);
    trainer.step(batch);
    const auto ours = trainer.observe();
    const auto theirs = oracle->step(batch);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].name, theirs[i].name);
      ASSERT_EQ(digest_of({&ours[i]}), digest_of({&theirs[i]}))
          << name_of(ours[i].kind) << " " << ours[i].name << " step " << t;
    }
  }
}

TEST(Trainer, ExactTrackHasTheOraclesBits) { expect_same_bits(tiny(), {}, 3); }

TEST(Trainer, MicrobatchesChangeNoBit) {
  for (const std::int64_t parts : {1, 2, 3, 4, 7}) expect_same_bits(tiny(), {.microbatches = parts}, 2);
}

TEST(Trainer, EverythingAtOnce) {
  expect_same_bits(tiny({"dropout=0.2", "label_smoothing=0.1", "layers=3", "shared_block=[0,2]", "window=3",
                         "documents=[4,3]", "valid_labels=[2,5,0]", "unused=[0,7]", "frozen=[\"*.norm1.bias\"]",
                         "optimizer=adamw", "weight_decay=0.1", "clip=0.05", "learning_rate_schedule=cosine"}),
                   {.microbatches = 3}, 3);
}

TEST(Trainer, OverflowSkipsTheStepAndKeepsTheParameters) {
  // A scale that pushes gradients past 2^22.
  const auto w = tiny({"loss_scale=1099511627776"});
  Device device;
  ImmediateQueue queue(device);
  Trainer trainer(queue, w, Track::exact);
  const auto before = digest_of(trainer.parameters());
  const workload::Corpus corpus(w);
  auto batch = workload::batch(w, corpus, 1);
  batch.step = 0;  // so that the step's number does not tell the digests apart
  EXPECT_EQ(trainer.step(batch).skipped, Skipped::non_finite);
  EXPECT_EQ(digest_of(trainer.parameters()), before);
  expect_same_bits(w, {}, 2);
}

TEST(Trainer, AStepWithoutLabelsIsSkipped) {
  const auto w = tiny({"valid_labels=[0]"});
  Device device;
  ImmediateQueue queue(device);
  Trainer trainer(queue, w, Track::native);
  const workload::Corpus corpus(w);
  const auto result = trainer.step(workload::batch(w, corpus, 1));
  EXPECT_EQ(result.skipped, Skipped::no_label);
  EXPECT_FALSE(result.loss);
  expect_same_bits(w, {}, 2);
}

TEST(Trainer, NothingIsLeftBehindByAStep) {
  const auto w = tiny();
  Device device;
  ImmediateQueue queue(device);
  Trainer trainer(queue, w, Track::f64);
  const workload::Corpus corpus(w);
  trainer.step(workload::batch(w, corpus, 1));
  EXPECT_EQ(device.memory().current(Category::activation), 0);
  EXPECT_EQ(device.memory().current(Category::workspace), 0);
}

TEST(Trainer, AMemoryLimitIsKept) {
  Device device({.memory_limit_bytes = 100'000});
  ImmediateQueue queue(device);
  EXPECT_THROW(Trainer(queue, tiny(), Track::exact), OutOfMemory);
}

}  // namespace
}  // namespace shardproof::engine
