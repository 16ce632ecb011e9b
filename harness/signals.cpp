// SPDX-License-Identifier: Apache-2.0
#include "harness/signals.hpp"

#include <atomic>
#include <csignal>

namespace shardproof::harness {
namespace {

// The signal's number. A handler may write to lock-free atomics, and other threads read it.
std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  caught = number;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return caught != 0; }

void stop_if_interrupted() {
  if (const int number = caught; number != 0)
    throw Interrupted(number == SIGINT ? "interrupted by SIGINT" : "interrupted by SIGTERM");
}

}  // namespace shardproof::harness
