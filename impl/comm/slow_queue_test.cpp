// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/slow_queue.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "impl/comm/inject.hpp"
#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::error_of, testing::Node, testing::on_ranks;

constexpr std::int64_t millisecond = 1'000'000;

/// Keeps the processor busy for so many nanoseconds of this thread's own time, and says for how many exactly.
std::int64_t work(std::int64_t nanoseconds) {
  TimeSpan span;
  take_start(span);
  do take_end(span);
  while (span.cpu_end - span.cpu_start < nanoseconds);
  return span.cpu_end - span.cpu_start;
}

// Not how long it takes, only that it is not shorter. Processor time, so other programs do not matter.
TEST(SlowQueue, AKernelTakesTheFactorInsideItsSpan) {
  Device device;
  device.spans().turn(true);
  SlowQueue queue(device, 4, [] { return true; });
  std::int64_t own = 0;
  queue.submit("product", [&](KernelScope&) { own = work(2 * millisecond); });
  queue.synchronize();
  const Spans spans = device.spans().take();
  ASSERT_EQ(spans.kernels.size(), 1u);
  const KernelSpan& span = spans.kernels[0];
  EXPECT_GE(span.cpu_end - span.cpu_start, 4 * own);
  EXPECT_GE(span.end - span.start, 4 * own) << "the wall sees it too";
}

TEST(SlowQueue, AnExchangeDoesNot) {
  Device device;
  SlowQueue queue(device, 1000, []() -> bool { throw std::logic_error("it spins"); });
  for (const char* name : {"all_reduce", "send", "receive", "barrier"})
    queue.submit(name, [](KernelScope&) { work(2 * millisecond); });
  EXPECT_THROW(queue.submit("reduce", [](KernelScope&) { work(2 * millisecond); }), std::logic_error);
}

TEST(SlowQueue, SpinsNoLongerThanTheWorldGoesOn) {
  Device device;
  int asked = 0;
  SlowQueue queue(device, 1000, [&] { return ++asked < 3; });
  bool ran = false;
  queue.submit("product", [&](KernelScope&) { ran = work(millisecond) > 0; });  // would be asked 999 times
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(ran);
}

TEST(SlowQueue, AFailureElsewhereEndsIt) {
  std::int64_t took = 0;
  const auto text = error_of<DeviceError>([&] {
    on_ranks(2, {.injections = {"slow:rank=1,factor=1000"}}, [&](Node& node) {
      const auto queue = node.world.queue(node.device);
      if (node.rank == 0) throw DeviceError("broken");
      node.device.spans().turn(true);
      queue->submit("product", [](KernelScope&) { work(20 * millisecond); });  // 20 s
      const Spans spans = node.device.spans().take();
      took = spans.kernels.at(0).cpu_end - spans.kernels.at(0).cpu_start;
    });
  });
  EXPECT_EQ(text, "rank 0: broken");
  EXPECT_GT(took, 0);
  EXPECT_LT(took, 10'000 * millisecond);
}

TEST(SlowQueue, APollEndsIt) {
  ThreadsOptions options{.injections = {"slow:factor=1000"}};
  options.poll = [] { throw BadInput("stopped"); };
  const auto text = error_of<BadInput>([&] {
    on_ranks(1, options, [&](Node& node) {
      node.world.queue(node.device)->submit("product", [](KernelScope&) { work(20 * millisecond); });
      ADD_FAILURE() << "the kernel ended";
    });
  });
  EXPECT_EQ(text, "rank 0: stopped");
}

TEST(SlowQueue, IsOfTheRanksThatAreSlow) {
  on_ranks(3, {.injections = {"slow:rank=1,factor=3"}}, [](Node& node) {
    const auto queue = node.world.queue(node.device);
    EXPECT_EQ(dynamic_cast<SlowQueue*>(queue.get()) != nullptr, node.rank == 1);
  });
  EXPECT_EQ(error_of<NoCallMatched>([] { on_ranks(2, {.injections = {"slow:rank=1"}}, [](Node&) {}); }),
            "--inject slow:rank=1,factor=2: it computes on no queue");
}

}  // namespace
}  // namespace shardproof::comm
