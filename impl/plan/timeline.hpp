// SPDX-License-Identifier: Apache-2.0
// A schedule on a clock: makespan and bubble at given costs.
#pragma once

#include <string>
#include <vector>

#include "impl/plan/replay.hpp"
#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// Of one action of any stage, in one unit; B costs I and W. Messages and U take no time.
struct ActionCosts {
  double forward = 1, backward_input = 1, backward_weight = 1;
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;  ///< as Schedule::ranks
  double makespan = 0;
  double busy = 0;  ///< sum over all actions
  /// Idle time of all ranks over their busy time: the bubble over the ideal time (Narayanan et al. 2021, section
  /// 2.2.1), (p-1)/m for gpipe; 0 where nothing takes time.
  double bubble_overhead() const;
  /// Idle time of all ranks over ranks x makespan.
  double bubble_fraction() const;
};

/// For a schedule without findings (checker.hpp). Throws BadInput where actions wait for each other.
Timeline timeline(const Schedule& schedule, const ActionCosts& costs = {});

/// One line per rank, a column per unit of time where F, I and W each take one; "." is idle time. Stages are left out
/// where each rank has one.
std::string picture(const Schedule& schedule);

}  // namespace shardproof::plan
