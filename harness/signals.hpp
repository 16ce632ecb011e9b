// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/errors.hpp"

namespace shardproof::harness {

/// SIGINT or SIGTERM asked the program to end.
struct Interrupted : Error {
  using Error::Error;
};

/// From here on the first SIGINT or SIGTERM only raises a flag, and the second one ends the process; writing beyond a
/// file size limit, or into a pipe that nobody reads, is an error instead of a signal.
void catch_signals();

bool interrupted();

/// Throws Interrupted when the flag is up. Called between steps, the oracle's own included, and between cases.
void stop_if_interrupted();

}  // namespace shardproof::harness
