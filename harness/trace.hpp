// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "kernels/core/span_log.hpp"

namespace shardproof::harness {

/// The recorded steps as a Chrome trace (JSON, "X" events in microseconds from the first one's start): a process for
/// each rank, with lanes for steps, actions, computation, copies, communication and waits. Of the first so many steps.
std::string chrome_trace(std::span<const Spans> ranks, std::size_t steps = 3);

}  // namespace shardproof::harness
