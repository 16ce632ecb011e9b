// SPDX-License-Identifier: Apache-2.0
// What `shardproof schedule` prints of one schedule.
#pragma once

#include <string>

#include "harness/schedule_options.hpp"

namespace shardproof::harness {

/// "4 ranks, 8 stages, 8 microbatches"
std::string size_of(const NamedSchedule& named);

/// Throws BadInput where blocks of F and B wait for each other.
plan::Timeline timeline_of(const NamedSchedule& named, const plan::ActionCosts& costs);

/// Of a schedule that is proven: what it takes beside time.
std::string proof_report(const NamedSchedule& named);

/// Makespan, bubble and each rank's busy and idle time at the costs, activations and weight versions, with what the
/// schedule's paper says of each in closed form where its assumptions hold. `line`: the schedule's at the costs.
std::string bubble_report(const NamedSchedule& named, const plan::ActionCosts& costs, const plan::Timeline& line);

}  // namespace shardproof::harness
