// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/span_log.hpp"

#include <ctime>

namespace shardproof {
namespace {

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void take_start(TimeSpan& span) {
  span.thread = std::this_thread::get_id();
  span.start = now(CLOCK_MONOTONIC);
  span.cpu_start = now(CLOCK_THREAD_CPUTIME_ID);
}

void take_end(TimeSpan& span) {
  span.cpu_end = now(CLOCK_THREAD_CPUTIME_ID);
  span.end = now(CLOCK_MONOTONIC);
}

}  // namespace shardproof
