// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/memory_ledger.hpp"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/thread_memory.hpp"

namespace shardproof {
namespace {

TEST(MemoryLedger, CountsByCategoryAndSpace) {
  MemoryLedger ledger(Rank{0});
  ledger.allocate(Category::gradient, Space::device, 100, "a");
  ledger.allocate(Category::activation, Space::device, 30, "b");
  ledger.allocate(Category::activation, Space::host, 7, "c");
  ledger.release(Category::gradient, Space::device, 100);
  ledger.allocate(Category::activation, Space::device, 20, "d");
  EXPECT_EQ(ledger.current(Category::gradient), 0);
  EXPECT_EQ(ledger.peak(Category::gradient), 100);
  EXPECT_EQ(ledger.current(Category::activation), 50);
  EXPECT_EQ(ledger.current(Category::activation, Space::host), 7);
  EXPECT_EQ(ledger.current(Category::parameter), 0);
  EXPECT_EQ(ledger.current_total(), 50);
  EXPECT_EQ(ledger.peak_total(), 130);  // of the total: 100 + 30 was the most at once, not 100 + 50
  EXPECT_EQ(ledger.peak_total(Space::host), 7);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.peak_total(), 50);
  EXPECT_EQ(ledger.peak(Category::gradient), 0);
}

TEST(MemoryLedger, EnforcesTheLimitOfTheDevice) {
  MemoryLedger ledger(Rank{3}, 1000);
  ledger.allocate(Category::parameter, Space::device, 600, "weight");
  ledger.allocate(Category::workspace, Space::host, 5000, "pinned");  // host memory has no limit here
  try {
    ledger.allocate(Category::optimizer_state, Space::device, 401, "weight.momentum");
    FAIL() << "the limit was not enforced";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(std::string(error.what()),
              "rank 3: optimizer_state 'weight.momentum' asks for 401 bytes with 600 in use; the device has 1000");
  }
  EXPECT_EQ(ledger.current(Category::optimizer_state), 0);  // nothing was charged
  EXPECT_EQ(ledger.peak_total(), 600);
  ledger.allocate(Category::optimizer_state, Space::device, 400, "weight.momentum");
  EXPECT_THROW(ledger.allocate(Category::workspace, Space::device, 1, "x"), OutOfMemory);
  ledger.allocate(Category::workspace, Space::device, 0, "x");
  EXPECT_EQ(ledger.current_total(), 1000);
}

TEST(MemoryLedger, CountsFromSeveralThreads) {
  MemoryLedger ledger(Rank{0});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        ledger.allocate(Category::communication, Space::device, 3, "buffer");
        if (i % 2 == 0) ledger.release(Category::communication, Space::device, 3);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(ledger.current_total(), 4 * 1000 * 3);
  EXPECT_EQ(ledger.current(Category::communication), 4 * 1000 * 3);
}

TEST(MemoryLedger, FollowsTensorsAndScratch) {
  Device device({.rank = Rank{1}, .memory_limit_bytes = 4096});
  ImmediateQueue queue(device);
  auto& ledger = device.memory();
  {
    const Tensor weight(queue, {"weight", Dtype::f64, {10, 3}, Category::parameter});
    const Tensor view = weight.rows(2, 5).reshaped({15});  // shares the memory
    EXPECT_EQ(ledger.current(Category::parameter), 240);
    const Tensor bytes(queue, {"mask", Dtype::u8, {7}, Category::activation});
    EXPECT_EQ(ledger.current_total(), 247);
    const Tensor pinned(queue, {"pinned", Dtype::f32, {9}, Category::communication, Space::host});
    EXPECT_EQ(ledger.current(Category::communication, Space::host), 36);
    EXPECT_EQ(ledger.current_total(), 247);
    queue.submit("scratch", [&](KernelScope& scope) {
      scope.scratch<double>(100)[99] = 1;
      EXPECT_EQ(ledger.current(Category::workspace), 800);
    });
    EXPECT_EQ(ledger.current(Category::workspace), 0);
    EXPECT_EQ(ledger.peak(Category::workspace), 800);
    EXPECT_THROW(queue.submit("scratch", [&](KernelScope& scope) { scope.scratch<double>(1000); }), OutOfMemory);
    EXPECT_THROW(Tensor(queue, {"big", Dtype::fixed, {1000}, Category::gradient}), OutOfMemory);
    EXPECT_EQ(ledger.current_total(), 247);
  }
  EXPECT_EQ(ledger.current_total(), 0);
  EXPECT_EQ(ledger.current_total(Space::host), 0);
  EXPECT_EQ(ledger.peak_total(), 247 + 800);
}

TEST(MemoryLedger, AViewKeepsItsMemory) {
  Device device;
  ImmediateQueue queue(device);
  Tensor view;
  {
    const Tensor whole(queue, {"whole", Dtype::i32, {4, 2}, Category::workspace});
    view = whole.rows(3, 1);
  }
  EXPECT_EQ(device.memory().current_total(), 32);
  view = Tensor();
  EXPECT_EQ(device.memory().current_total(), 0);
}

TEST(MemoryLedger, WhatAnotherThreadReleasesIsNotMissingFromThisOne) {
  Device device;
  ImmediateQueue queue(device);
  const auto before = allocated_by_this_thread(Category::activation);
  Tensor lent(queue, {"lent", Dtype::f64, {4}, Category::activation});
  const Tensor own(queue, {"own", Dtype::f64, {2}, Category::activation});
  const Tensor other(queue, {"other", Dtype::f64, {8}, Category::workspace});
  const Tensor host(queue, {"host", Dtype::f64, {8}, Category::activation, Space::host});
  std::thread([receiver = std::move(lent)]() mutable {
    const auto at_start = allocated_by_this_thread(Category::activation);
    receiver = Tensor();
    EXPECT_EQ(allocated_by_this_thread(Category::activation) - at_start, -32);
  }).join();
  EXPECT_EQ(device.memory().current(Category::activation), 16);
  EXPECT_EQ(allocated_by_this_thread(Category::activation) - before, 48);
}

}  // namespace
}  // namespace shardproof
