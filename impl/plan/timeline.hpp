// SPDX-License-Identifier: Apache-2.0
// A schedule on a clock: makespan and bubble at given costs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "impl/plan/replay.hpp"
#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// Of one action of a stage, in one unit; B costs I and W, and what it makes is there when both have ended. U takes no
/// time, but waits for the other ranks of its stage. Of a slice: 1 / slices.
struct ActionCosts {
  double forward = 1, backward_input = 1, backward_weight = 1;
  double message = 0;  ///< from the end of an action to the start of what waits for it on another rank; links carry any
                       ///< number of messages at once
  std::vector<double> stages = {};  ///< factor of each; empty: 1
  /// An F with a B of another microbatch just after it is one block, as in DualPipe: it begins when both can, and what
  /// both make is there at its end.
  bool overlapped = false;
};

/// Whether the action at `at` is the F of such a block, and the next its B.
bool begins_block(std::span<const Action> actions, std::size_t at);

struct Timeline {
  std::vector<std::vector<Span>> ranks;  ///< as Schedule::ranks
  double makespan = 0;
  double busy = 0;  ///< sum over all actions
  /// Idle time of all ranks over their busy time: the bubble over the ideal time (Narayanan et al. 2021, section
  /// 2.2.1), (p-1)/m for gpipe; 0 where nothing takes time.
  double bubble_overhead() const;
  /// Idle time of all ranks over ranks x makespan.
  double bubble_fraction() const;
  /// From the start of a rank's first action to the end of its last, of the rank where that is longest: the cost of
  /// Zero Bubble's tables (Qi et al. 2024, section 5.3), of which bubble_of_span is 1 - busy time of a rank / span, for
  /// ranks that are equally busy.
  double longest_span() const;
  double bubble_of_span() const;
};

/// For a schedule without findings (checker.hpp). Throws BadInput where actions wait for each other, as blocks may that
/// each hold what another waits for.
Timeline timeline(const Schedule& schedule, const ActionCosts& costs = {});

/// One line per rank, a column per unit of time where F, I and W each take one; "." is idle time. Stages are left out
/// where each rank has one.
std::string picture(const Schedule& schedule);

}  // namespace shardproof::plan
