// SPDX-License-Identifier: Apache-2.0
// Forms against ledgers: what was counted while training equals what the closed forms of harness/predict say.
#include <algorithm>

#include <gtest/gtest.h>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "impl/engine/trainer.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::harness {
namespace {

void expect_forms(const workload::Workload& w, Track track, std::int64_t microbatches) {
  SCOPED_TRACE(workload::print(w));
  Device device({.poison = false});
  ImmediateQueue queue(device);
  engine::Trainer trainer(queue, w, track, {.microbatches = microbatches});
  const auto batch = workload::batch(w, workload::Corpus(w), 1);
  trainer.step(batch);

  const auto bytes = predict::role_bytes(track);
  auto& memory = device.memory();
  EXPECT_EQ(memory.peak(Category::parameter), predict::parameter_bytes(w, bytes));
  EXPECT_EQ(memory.peak(Category::gradient), predict::gradient_bytes(w, bytes));
  EXPECT_EQ(memory.peak(Category::optimizer_state), predict::state_bytes(w, bytes));

  const auto samples = workload::part(batch, microbatches, 0).size();
  const auto& saved = trainer.saved_bytes();
  ASSERT_EQ(std::ssize(saved), w.layers + 2);
  EXPECT_EQ(saved.front().bytes, predict::saved_embedding_bytes(w, bytes, samples));
  for (std::size_t l = 1; l + 1 < saved.size(); ++l) {
    EXPECT_EQ(saved[l].bytes, predict::saved_block_bytes(w, bytes, samples)) << saved[l].part;
  }
  EXPECT_EQ(saved.back().bytes, predict::saved_head_bytes(w, bytes, samples));

  EXPECT_EQ(static_cast<double>(device.flops().model()), predict::flops(w, batch.size()).total());
  EXPECT_EQ(device.flops().hardware(), device.flops().model());
}

TEST(Forms, EqualTheLedgersOnRandomWorkloads) {
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto w = workload::random_workload(7, i);
    for (const auto track : {Track::exact, Track::f64, Track::native}) expect_forms(w, track, 1 + i % 3);
  }
}

TEST(Forms, EqualTheLedgersOnTiny) {
  for (const auto* dropout : {"dropout=0", "dropout=0.1"}) {
    expect_forms(workload::load("tiny", std::vector<std::string>{dropout}), Track::exact, 2);
  }
}

}  // namespace
}  // namespace shardproof::harness
