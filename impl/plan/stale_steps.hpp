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
/// another update before the step ends: nobody could tell the gradients of the one that was made.
std::vector<std::vector<std::size_t>> actions_by_step(const Schedule& schedule, const ScheduleIndex& index,
                                                      std::int64_t parts);

}  // namespace shardproof::plan
