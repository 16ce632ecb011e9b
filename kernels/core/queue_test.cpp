// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/queue.hpp"

#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

template <class Q>
struct AnyQueue : ::testing::Test {
  Device device;
};
using Queues = ::testing::Types<ImmediateQueue, WorkerQueue>;
TYPED_TEST_SUITE(AnyQueue, Queues);

TYPED_TEST(AnyQueue, RunsInOrder) {
  TypeParam queue(this->device);
  std::vector<int> order;  // no lock: the queue must order its work, which the thread sanitizer checks
  std::vector<int> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  for (const int i : expected) queue.submit("k", [&order, i](KernelScope&) { order.push_back(i); });
  queue.synchronize();
  EXPECT_EQ(order, expected);
}

TYPED_TEST(AnyQueue, TensorsOutliveTheirHandles) {
  TypeParam queue(this->device);
  std::vector<double> seen;
  {
    const Tensor t = testing::make(queue, "t", {3}, std::vector<double>{1, 2, 3}, Dtype::f64);
    queue.submit("k", [t, &seen](KernelScope& s) { seen.assign(s.read<double>(t), s.read<double>(t) + 3); });
  }
  queue.synchronize();
  EXPECT_EQ(seen, (std::vector<double>{1, 2, 3}));
}

TYPED_TEST(AnyQueue, GoesOnAfterAnErrorWasReported) {
  TypeParam queue(this->device);
  const auto fail = [](KernelScope&) { throw NotSupported("first"); };
  const auto fail_and_wait = [&] {
    queue.submit("k", fail);
    queue.synchronize();
  };
  EXPECT_THROW(fail_and_wait(), NotSupported);
  queue.synchronize();  // once
  bool ran = false;
  queue.submit("k", [&](KernelScope&) { ran = true; });
  queue.synchronize();
  EXPECT_TRUE(ran);
}

TEST(WorkerQueue, RunsOnAThreadOfItsOwn) {
  Device device;
  WorkerQueue queue(device);
  std::thread::id id;
  queue.submit("k", [&](KernelScope&) { id = std::this_thread::get_id(); });
  queue.synchronize();
  EXPECT_NE(id, std::this_thread::get_id());
}

TEST(WorkerQueue, TheFirstErrorStopsIt) {
  Device device;
  WorkerQueue queue(device);
  bool ran = false;
  queue.submit("k", [](KernelScope&) { throw NotSupported("first"); });
  queue.submit("k", [](KernelScope&) { throw BadInput("second"); });
  queue.submit("k", [&](KernelScope&) { ran = true; });
  try {
    queue.synchronize();
    FAIL() << "the error was lost";
  } catch (const NotSupported& error) {
    EXPECT_EQ(std::string(error.what()), "first");
  }
  EXPECT_FALSE(ran);
}

TEST(WorkerQueue, FetchReportsAnEarlierError) {
  Device device;
  WorkerQueue queue(device);
  const Tensor t = testing::make(queue, "t", {2}, std::vector<double>{1, 2}, Dtype::f64);
  queue.submit("k", [](KernelScope&) { throw NotSupported("earlier"); });
  EXPECT_THROW(fetch<double>(queue, t), NotSupported);
  EXPECT_EQ(fetch<double>(queue, t), (std::vector<double>{1, 2}));
}

TEST(WorkerQueue, EventsOrderQueues) {
  Device device;
  WorkerQueue producer(device), consumer(device);
  const Tensor t(producer, {"t", Dtype::f64, {1}, Category::communication});
  Event go;  // holds the producer until the consumer's work is queued
  std::vector<double> seen;
  for (int round = 0; round < 50; ++round) {
    if (round == 0) producer.wait(go);
    producer.submit("write", [=](KernelScope& s) { *s.write<double>(t) = round; });
    consumer.wait(producer.record());
    consumer.submit("read", [&, t](KernelScope& s) { seen.push_back(*s.read<double>(t)); });
    producer.wait(consumer.record());
  }
  EXPECT_TRUE(seen.empty());
  go.complete();
  consumer.synchronize();
  producer.synchronize();
  std::vector<double> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(WorkerQueue, TheHostWaitsForEvents) {
  Device device;
  WorkerQueue queue(device);
  int value = 0;
  queue.submit("k", [&](KernelScope&) { value = 1; });
  const Event event = queue.record();
  event.wait();
  EXPECT_EQ(value, 1);
  event.wait();  // complete stays complete
}

TEST(WorkerQueue, WhoWaitsForFailedWorkFails) {
  Device device;
  WorkerQueue producer(device), consumer(device);
  ImmediateQueue host(device);
  bool ran = false;
  producer.submit("k", [](KernelScope&) { throw CommError("the peer is gone"); });
  const Event event = producer.record();
  consumer.wait(event);
  consumer.submit("k", [&](KernelScope&) { ran = true; });
  EXPECT_THROW(host.wait(event), CommError);
  EXPECT_THROW(consumer.synchronize(), CommError);
  EXPECT_FALSE(ran);
  EXPECT_THROW(producer.synchronize(), CommError);
}

TEST(WorkerQueue, EventsBeforeAnErrorAreGood) {
  Device device;
  WorkerQueue queue(device);
  const Event before = queue.record();
  queue.submit("k", [](KernelScope&) { throw NotSupported("later"); });
  before.wait();
  EXPECT_THROW(queue.synchronize(), NotSupported);
}

TEST(WorkerQueue, DestructionRunsWhatIsPending) {
  Device device;
  std::atomic<int> ran = 0;
  Event go;
  {
    WorkerQueue queue(device);
    queue.wait(go);
    const Tensor t(queue, {"t", Dtype::f64, {1}, Category::workspace});
    for (int i = 0; i < 20; ++i) queue.submit("k", [&ran, t](KernelScope& s) { *s.write<double>(t) = ++ran; });
    go.complete();
  }
  EXPECT_EQ(ran, 20);
  EXPECT_EQ(device.memory().current_total(), 0);
}

TEST(WorkerQueue, DestructionWithAnUnreportedError) {
  Device device;
  bool ran = false;
  {
    WorkerQueue queue(device);
    queue.submit("k", [](KernelScope&) { throw NotSupported("nobody asks"); });
    queue.submit("k", [&](KernelScope&) { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(WorkerQueue, TakesWorkFromSeveralThreads) {
  Device device;
  WorkerQueue queue(device);
  int sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) queue.submit("k", [&](KernelScope&) { ++sum; });
      queue.synchronize();
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(sum, 600);
}

}  // namespace
}  // namespace shardproof
