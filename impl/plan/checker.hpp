// SPDX-License-Identifier: Apache-2.0
// Proves a schedule before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_findings.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

/// Every finding, of more than a hundred their count; empty for a legal schedule:
/// - an action of a stage, microbatch or slice that does not exist, that is doubled, or that is missing (of many, the
///   first ten and their count); a rank without an action;
/// - F, I and W of one microbatch of a stage on several ranks; I before F, W before I, U before W on their rank; slices
///   of F not forwards, of I not backwards in time;
/// - where there is none of these, updates that are not those of the schedule's rule (schedule_updates.hpp);
/// - else weights that the rule does not give (weight_versions.hpp);
/// - ranks that share stages (mirrors) and finish the gradients of those in different orders. Where there is no U, the
///   sums over the copies follow the last action of a rank, in this order, and would wait for each other;
/// - where there is none of these, a deadlock with sends of the schedule's depth: a circle of blocked actions.
/// Receives come just before, sends just after their action, and messages of one direction arrive in the order in which
/// they were sent. A U waits for those of the other ranks of its stage.
std::vector<ScheduleFinding> prove(const Schedule& schedule, const ScheduleExtent& extent);
/// The same of whole sequences, as "rank 0: 0B1 comes before 0F1".
std::vector<std::string> findings(const Schedule& schedule, std::int64_t stages, std::int64_t microbatches);
std::vector<std::string> texts_of(const std::vector<ScheduleFinding>& findings);

/// The most activations that a rank holds at once, in microbatches of one stage (slices: in slices): after F, until its
/// W (or B).
std::vector<std::int64_t> peak_in_flight(const Schedule& schedule);
/// The same with what is held after I as its part of an activation of a stage: in Zero Bubble's terms M_W of M_B (Qi et
/// al. 2024, table 2).
std::vector<double> peak_activations(const Schedule& schedule, double after_input_backward);

}  // namespace shardproof::plan
