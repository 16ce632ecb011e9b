// SPDX-License-Identifier: Apache-2.0
// The messages that follow from a schedule, without time.
#pragma once

#include <string>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

/// "" where every rank reaches its end with sends of the schedule's depth; else which ranks wait for what. For a
/// complete schedule.
std::string deadlock(const Schedule& schedule, const ScheduleIndex& index);

}  // namespace shardproof::plan
