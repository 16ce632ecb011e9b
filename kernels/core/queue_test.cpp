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

// Whatever waits when a queue ends must not keep it from ending: the event here is completed by nobody.
TEST(WorkerQueue, DestructionDoesNotWaitForEvents) {
  Device device;
  ImmediateQueue host(device);
  bool before = false, behind = false;
  Event never, recorded;
  {
    WorkerQueue queue(device);
    queue.submit("k", [&](KernelScope&) { before = true; });
    queue.wait(never);
    queue.submit("k", [&](KernelScope&) { behind = true; });
    recorded = queue.record();
  }
  EXPECT_TRUE(before);
  EXPECT_FALSE(behind);
  EXPECT_THROW(host.wait(recorded), InternalError);  // nor does who waits for the dropped work
}

TEST(WorkerQueue, AnExceptionBetweenAWaitAndItsEventEndsTheQueue) {
  Device device;
  const auto interrupted = [&] {
    Event go;
    WorkerQueue queue(device);
    queue.wait(go);
    throw NotSupported("before go.complete()");
  };
  EXPECT_THROW(interrupted(), NotSupported);
}

TEST(Event, TheFirstCompletionCounts) {
  Event event, failed;
  event.complete();
  event.complete(std::make_exception_ptr(HangError("too late")));
  event.wait();
  failed.complete(std::make_exception_ptr(HangError("given up")));
  failed.complete();
  EXPECT_THROW(failed.wait(), HangError);
}

TEST(Event, WaitsForAtMostSoLong) {
  Event event;
  EXPECT_FALSE(event.wait_for(0));
  EXPECT_FALSE(event.wait_for(0.001));
  event.complete();
  EXPECT_TRUE(event.wait_for(0));
  EXPECT_TRUE(event.wait_for(1e300));
  Event failed;
  failed.complete(std::make_exception_ptr(HangError("given up")));
  EXPECT_THROW(failed.wait_for(0), HangError);
}

TEST(Event, WaitsUntilAStopIsAskedFor) {
  Event event;
  std::stop_source stop;
  std::thread asks([&] { stop.request_stop(); });
  EXPECT_FALSE(event.wait(stop.get_token()));
  asks.join();
  event.complete();
  EXPECT_TRUE(event.wait(stop.get_token()));
}

// With two hosts, an error of the one's work would drop the other's, and only one of them would be told.
TEST(WorkerQueue, HasOneHostThreadAtATime) {
  Device device;
  WorkerQueue queue(device);
  const Tensor t = testing::make(queue, "t", {1}, std::vector<double>{1}, Dtype::f64);  // this thread's
  Event done;
  done.complete();
  const auto refused = [&] {
    int count = 0;
    const auto expect_refusal = [&](auto use) {
      try {
        use();
      } catch (const InternalError&) {
        ++count;
      }
    };
    expect_refusal([&] { queue.submit("k", [](KernelScope&) {}); });
    expect_refusal([&] { queue.record(); });
    expect_refusal([&] { queue.wait(done); });
    expect_refusal([&] { queue.synchronize(); });
    expect_refusal([&] { fetch<double>(queue, t); });
    return count;
  };
  int during = 0, after = 0;
  std::thread([&] { during = refused(); }).join();
  EXPECT_EQ(during, 5);
  queue.synchronize();
  std::thread([&] {
    queue.submit("k", [](KernelScope&) {});
    queue.synchronize();
    ++after;
  }).join();
  EXPECT_EQ(after, 1);
  EXPECT_EQ(fetch<double>(queue, t), std::vector<double>{1});
}

// The flag is the tensor's, whoever writes which part; the thread sanitizer sees whether that is safe.
TEST(WorkerQueue, QueuesWritePartsOfOneTensor) {
  Device device;
  WorkerQueue first(device), second(device);
  const Tensor t(first, {"t", Dtype::fixed, {2}, Category::communication});
  for (int round = 0; round < 500; ++round) {
    zero(first, t);
    first.synchronize();
    first.submit("write", [part = t.rows(0, 1)](KernelScope& s) { s.write<Fixed>(part)->raw = fixed_invalid; });
    second.submit("update", [part = t.rows(1, 1)](KernelScope& s) { s.update<Fixed>(part)->raw += 1; });
    first.synchronize();
    second.synchronize();
    ASSERT_TRUE(fetch_overflow(first, t)) << round;
  }
}

}  // namespace
}  // namespace shardproof
