// SPDX-License-Identifier: Apache-2.0
#include "harness/signals.hpp"

#include <atomic>
#include <csignal>

namespace shardproof::harness {
namespace {

// The signal's number. A handler may write to lock-free atomics, and other threads read it.
std::atomic<int> caught = 0;
std::atomic<bool> caught_itself = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int number, siginfo_t* info, void*) {
  caught = number;
  if (info->si_code == SI_QUEUE) return;  // passed on by the monitor (impl/comm/monitor.hpp): most often a copy
  if (!caught_itself.exchange(true)) return;
  std::signal(number, SIG_DFL);
  std::raise(number);  // when this handler returns
}

void catch_signal(int number) {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;  // as std::signal()
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void catch_signals() {
  catch_signal(SIGINT);
  catch_signal(SIGTERM);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return caught != 0; }

void stop_if_interrupted() {
  if (const int number = caught; number != 0)
    throw Interrupted(number == SIGINT ? "interrupted by SIGINT" : "interrupted by SIGTERM");
}

}  // namespace shardproof::harness
