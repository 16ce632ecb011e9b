// SPDX-License-Identifier: Apache-2.0
// Replay: a list of operations to their start and end times. The checker feeds it given costs, the harness recorded
// spans, the predictor profile costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardproof::plan {

struct Dependency {
  std::size_t operation = 0;  ///< index into the list, in any direction
  double latency = 0;         ///< from its end to the start of what depends on it
};

/// Runs on one lane of one rank after its dependencies have ended, and after every earlier operation of that lane.
struct Operation {
  std::int64_t rank = 0, lane = 0;
  double cost = 0;  ///< seconds, or any unit
  std::vector<Dependency> dependencies;
};

struct Span {
  double start = 0, end = 0;
};

/// The earliest times. Throws BadInput, naming the operations that wait for each other, where there is a cycle.
std::vector<Span> replay(std::span<const Operation> operations);

}  // namespace shardproof::plan
