// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/slow_queue.hpp"

#include <utility>

#include "impl/comm/communicator.hpp"

namespace shardproof::comm {

namespace {

constexpr std::int64_t between_questions = 1'000'000;  // nanoseconds

/// Communicators name a kernel by the kind of its call.
bool is_exchange(std::string_view kernel) {
  for (std::size_t k = 0; k < kind_count; ++k)
    if (kernel == name_of(static_cast<Kind>(k))) return true;
  return false;
}

std::int64_t processor_time() {
  TimeSpan now;
  take_start(now);
  return now.cpu_start;
}

}  // namespace

SlowQueue::SlowQueue(Device& device, double factor, std::function<bool()> goes_on)
    : Queue(device), factor_(factor), goes_on_(std::move(goes_on)) {}

void SlowQueue::spin(std::int64_t nanoseconds) const {
  const auto start = processor_time();
  auto asked = start;
  for (auto now = start; now - start < nanoseconds; now = processor_time()) {
    if (now - asked < between_questions) continue;
    if (!goes_on_()) return;
    asked = now;
  }
}

void SlowQueue::submit(std::string_view name, Kernel kernel) {
  if (is_exchange(name)) return run(device(), name, kernel);
  run(device(), name, [&](KernelScope& scope) {
    const auto start = processor_time();
    kernel(scope);
    spin(static_cast<std::int64_t>((factor_ - 1) * static_cast<double>(processor_time() - start)));
  });
}

Event SlowQueue::record() {
  Event event;
  event.complete();
  return event;
}

}  // namespace shardproof::comm
