// SPDX-License-Identifier: Apache-2.0
// What `shardproof schedule` prints of one schedule.
#pragma once

#include <string>

#include "harness/schedule_options.hpp"

namespace shardproof::harness {

/// Of a schedule that is proven: what it takes beside time.
std::string proof_report(const NamedSchedule& named);

/// Makespan, bubble and each rank's busy and idle time at the costs, activations and weight versions, with what the
/// schedule's paper says of each in closed form where its assumptions hold. `line`: the schedule's at the costs.
std::string bubble_report(const NamedSchedule& named, const plan::ActionCosts& costs, const plan::Timeline& line);

}  // namespace shardproof::harness
