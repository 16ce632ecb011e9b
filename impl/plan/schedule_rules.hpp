// SPDX-License-Identifier: Apache-2.0
// What the generators of schedules share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// What of a shape beyond ranks and microbatches a schedule makes use of.
struct ShapeUse {
  bool chunks = false, slices = false, updates = false, replicas = false;
};
/// Why the rest of the shape must be as it is by default; "" where it is. `chunks`: what a schedule without choice has.
std::string unused_shape(const ScheduleShape& shape, const ShapeUse& use, std::int64_t chunks = 1);

/// The end of a word.
std::string_view plural(std::int64_t count);

void repeat(std::int64_t times, const auto& act) {
  for (std::int64_t k = 0; k < times; ++k) act();
}

/// Appends the microbatch, of all its slices: F in the order of time, others against it.
void append(std::vector<Action>& actions, const ScheduleShape& shape, const Action& action);

}  // namespace shardproof::plan
