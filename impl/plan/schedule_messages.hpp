// SPDX-License-Identifier: Apache-2.0
// The messages that follow from a schedule, without time.
#pragma once

#include <optional>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_findings.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

/// None where every rank reaches its end with sends of the schedule's depth; else a circle of ranks that wait for each
/// other, at the blocked action of the first. For a complete schedule with the updates of its rule.
std::optional<ScheduleFinding> deadlock(const Schedule& schedule, const ScheduleIndex& index);

}  // namespace shardproof::plan
