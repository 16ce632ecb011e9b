// SPDX-License-Identifier: Apache-2.0
// What the papers say of their schedules in closed form, and the same quantities measured on a schedule.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "impl/plan/schedule.hpp"
#include "impl/plan/timeline.hpp"

namespace shardproof::harness {

/// - bubble_fraction, bubble_overhead, bubble_of_span: plan::Timeline's
/// - bubble_time: makespan less the busy time of a rank; span_bubble_time: the longest span of a rank less it
/// - activations: the most that the rank holds at once, in microbatches of a stage
/// - weight_versions: the most that the rank keeps at once
std::span<const std::string_view> schedule_quantities();
/// For people: "bubble overhead: idle over busy time".
std::string_view meaning_of(std::string_view quantity);

/// Where and when a quantity is taken.
struct ScheduleCase {
  plan::ScheduleShape shape = {};
  plan::ActionCosts costs = {};
  std::size_t rank = 0;    ///< of activations and weight_versions
  double after_input = 1;  ///< of activations: what is held from I to W, as M_W of M_B (Qi et al. 2024)
};

/// `timeline`: of the schedule at the case's costs. Throws std::out_of_range for a rank that it has not.
double measured(std::string_view quantity, const plan::Schedule& schedule, const plan::Timeline& timeline,
                const ScheduleCase& at);

/// Stages are counted from 0.
struct ScheduleForm {
  std::string_view schedule, quantity;
  std::string_view text, source;  ///< "(K-1)/(M+K-1)", "Huang et al. 2019, section 2.3"
  /// None where what the paper assumes does not hold.
  std::optional<double> (*value)(const ScheduleCase& at);
};
std::span<const ScheduleForm> schedule_forms();
/// The first of them; null where there is none.
const ScheduleForm* schedule_form(std::string_view schedule, std::string_view quantity);

}  // namespace shardproof::harness
