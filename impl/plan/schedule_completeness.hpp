// SPDX-License-Identifier: Apache-2.0
// Whether a schedule has every action, once, on one rank and in order there.
#pragma once

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_findings.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

/// F, I and W of each microbatch of each stage: once, on one rank, in this order there; slices of F forwards, of I
/// backwards in time; U after the W that it names; a rank without an action. Of what is missing, ten are named. Where
/// units are more than actions, only that is said: memory is linear in actions.
void find_incomplete(const Schedule& schedule, const ScheduleExtent& extent, ScheduleFindings& findings);

}  // namespace shardproof::plan
