// SPDX-License-Identifier: Apache-2.0
// Plays what a training recorded on a clock where every rank has a device of its own: what lies between two exchanges
// of a rank takes as long as it took, and exchanges take what a fabric says or what moving their bytes took.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/fabric.hpp"
#include "kernels/core/span_log.hpp"

namespace shardproof::harness {

struct ReplayOptions {
  /// Costs are the thread's own processor time instead of wall time: right where ranks share processors.
  bool processor_time = false;
  /// None: exchanges cost what moving their bytes took when they were recorded.
  std::optional<Fabric> fabric = {};
  std::int64_t send_depth = 1;  ///< undelivered messages that a sender may be ahead of its receiver
};

/// The pipeline part of one step: from the first action of any rank to the end of the last.
struct PipelinePart {
  double makespan = 0, busy = 0;  ///< seconds; busy: inside actions, over all ranks
  double bubble_fraction(std::int64_t ranks) const;
  /// Idle over busy time (Narayanan et al. 2021, section 2.2.1).
  double bubble_overhead(std::int64_t ranks) const;
};

struct Replayed {
  std::vector<double> step_seconds;  ///< of each recorded step
  std::vector<PipelinePart> pipeline;
  std::int64_t operations = 0;
};

/// Throws BadInput where the exchanges of a step lack one of their ends.
Replayed replay_recorded(std::span<const Spans> ranks, const ReplayOptions& options);

/// The same parts on the clock of the wall.
std::vector<PipelinePart> pipeline_on_wall(std::span<const Spans> ranks);

}  // namespace shardproof::harness
