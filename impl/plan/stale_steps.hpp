// SPDX-License-Identifier: Apache-2.0
// A schedule without a flush, cut into the steps of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

/// Of each rank, how many of its actions have run at the end of each step: `parts` microbatches are a step, which ends
/// with their losses and with those updates whose last microbatch is among them. It runs all that these need, on any
/// rank (also that a send be received, for the next one to be made), and no more. So ranks may wait for each other
/// between steps; behind the last one nothing is left. Throws NotSupported where a rank would have to go backwards for
/// another update before the step ends: nobody could tell the gradients of the one that was made; and where it would
/// have to update in a step that the update is not of.
std::vector<std::vector<std::size_t>> actions_by_step(const Schedule& schedule, const ScheduleIndex& index,
                                                      std::int64_t parts);

/// What all ranks of a run without a flush go by.
struct StaleOrder {
  std::vector<std::vector<std::size_t>> by_step;  ///< of each rank, as actions_by_step
  std::vector<std::vector<std::int64_t>> read;    ///< of each rank's actions the version, as WeightVersions::read
  std::vector<std::int64_t> per_update;           ///< of each stage microbatches, as microbatches_per_update
};
/// Throws NotSupported as actions_by_step.
StaleOrder stale_order(const Schedule& schedule, std::int64_t parts);

}  // namespace shardproof::plan
