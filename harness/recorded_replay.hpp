// SPDX-License-Identifier: Apache-2.0
// Plays what a training recorded on a clock where every rank has a device of its own: what lies between two exchanges
// of a rank takes as long as it took, and exchanges take what a fabric says or what moving their bytes took.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/fabric.hpp"
#include "impl/plan/replay.hpp"
#include "kernels/core/span_log.hpp"

namespace shardproof::harness {

struct ReplayOptions {
  /// Costs are the thread's own processor time instead of wall time: right where ranks share processors.
  bool processor_time = false;
  /// None: exchanges cost what moving their bytes took when they were recorded.
  std::optional<Fabric> fabric = {};
  std::int64_t send_depth = 1;  ///< undelivered messages that a sender may be ahead of its receiver
  /// Steps end in the middle of the pipeline, on each rank at its own time: a message may have been sent before its
  /// sender was recorded, or be received after its receiver was, and likewise with collectives. Nothing waits for what
  /// was not recorded.
  bool without_flush = false;
  std::int64_t round = 1;  ///< without a flush: steps after which ranks that take them in turn are where they were
};

/// The pipeline part of one step: from the first action of any rank to the end of the last.
struct PipelinePart {
  double makespan = 0, busy = 0;  ///< seconds; busy: inside actions, over all ranks
  double bubble_fraction(std::int64_t ranks) const;
  /// Idle over busy time (Narayanan et al. 2021, section 2.2.1).
  double bubble_overhead(std::int64_t ranks) const;
};

/// Without a flush: the pipeline part of several steps, from the end of one to the end of a later one on the rank whose
/// last step ends first. All ranks have ended their first round before it and have forwards to run until its end, so
/// that none fills or drains, and what the others do in it is as many steps.
struct SteadyPart : PipelinePart {
  std::int64_t steps = 0;  ///< 0: too few were recorded
};
/// `actions`: start and end of each rank's; `step_ends`: of each rank's steps; `drains`: when the first rank has ended
/// its last forward; all on one clock. Of whole rounds of steps.
SteadyPart steady_part(const std::vector<std::vector<plan::Span>>& actions,
                       const std::vector<std::vector<double>>& step_ends, double drains, std::int64_t round = 1);

struct Replayed {
  std::vector<double> step_seconds;    ///< of each recorded step: from the end of the one before, on the last rank
  std::vector<PipelinePart> pipeline;  ///< of each; none without a flush
  SteadyPart steady;                   ///< without a flush
  std::int64_t operations = 0;
};

/// Throws BadInput where the exchanges of a step lack one of their ends.
Replayed replay_recorded(std::span<const Spans> ranks, const ReplayOptions& options);

/// The same parts on the clock of the wall.
std::vector<PipelinePart> pipeline_on_wall(std::span<const Spans> ranks);
SteadyPart steady_on_wall(std::span<const Spans> ranks, std::int64_t round);

}  // namespace shardproof::harness
