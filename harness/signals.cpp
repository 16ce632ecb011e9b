// SPDX-License-Identifier: Apache-2.0
#include "harness/signals.hpp"

#include <csignal>

namespace shardproof::harness {
namespace {

// The one thing a signal handler may write to.
volatile std::sig_atomic_t caught = 0;

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
}

bool interrupted() { return caught != 0; }

void stop_if_interrupted() {
  if (caught) throw Interrupted(caught == SIGINT ? "interrupted by SIGINT" : "interrupted by SIGTERM");
}

}  // namespace shardproof::harness
