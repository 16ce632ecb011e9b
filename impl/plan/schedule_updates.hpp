// SPDX-License-Identifier: Apache-2.0
// The updates that a schedule must have, by the rule for its weights.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_findings.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

/// Of each stage, on how many ranks it is: copies, whose gradients are summed at each update.
std::vector<std::int64_t> copies_of_stages(const Schedule& schedule, std::int64_t stages);

/// How many microbatches in a row an update of the stage is of:
/// - flushed: all;
/// - stashed and vertical_sync: one on each rank that holds the stage (Narayanan et al. 2019, sections 3.2 and 4:
///   replicas take minibatches in turn and update together; that they sum, and do not average, is ours);
/// - double_buffered: as many as the first update of any stage says.
std::vector<std::int64_t> microbatches_per_update(const Schedule& schedule, const ScheduleExtent& extent);

/// On each rank that holds a stage one U for each update, in their order, after the W of the rank's microbatches of it
/// and by the name of the last of them; flushed: of one of them, and a schedule may have none at all. For a schedule
/// that is complete.
void find_wrong_updates(const Schedule& schedule, const ScheduleIndex& index, ScheduleFindings& findings);

}  // namespace shardproof::plan
