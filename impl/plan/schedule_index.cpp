// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_index.hpp"

#include <algorithm>
#include <limits>

namespace shardproof::plan {

using enum ActionKind;

ScheduleExtent extent_of(const Schedule& schedule) {
  ScheduleExtent extent;
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions) {
      extent.stages = std::max(extent.stages, action.stage + 1);
      extent.microbatches = std::max(extent.microbatches, action.microbatch + 1);
      if (action.kind != update) extent.slices = std::max(extent.slices, action.slice + 1);
    }
  return extent;
}

ScheduleExtent extent_of(const ScheduleShape& shape) {
  return {shape.stages(), shape.microbatches, shape.slices == 1 ? 0 : shape.slices};
}

std::int64_t ScheduleExtent::units() const {
  std::int64_t units = 0;
  if (__builtin_mul_overflow(stages, microbatches, &units) || __builtin_mul_overflow(units, parts(), &units))
    return std::numeric_limits<std::int64_t>::max();
  return units;
}

ScheduleIndex::ScheduleIndex(const Schedule& schedule, const ScheduleExtent& extent)
    : schedule_(schedule), extent_(extent), places_(static_cast<std::size_t>(3 * extent.units())) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
      const Action& action = schedule.ranks[rank][at];
      if (action.kind == update) continue;
      const auto first = [&](ActionKind kind) {
        ActionPlace& place = places_[static_cast<std::size_t>(3 * unit(action) + static_cast<std::int64_t>(kind))];
        if (!place) place = {static_cast<std::int32_t>(rank), static_cast<std::int32_t>(at)};
      };
      if (action.kind == forward) first(forward);
      if (is_input_backward(action)) first(backward_input);
      if (is_weight_backward(action)) first(backward_weight);
    }
}

std::optional<ActionPlace> ScheduleIndex::neighbour(const Action& action, std::int64_t stage) const {
  if (stage < 0 || stage >= extent_.stages) return std::nullopt;
  const ActionKind kind = action.kind == forward ? forward : backward_input;
  return place(unit({stage, kind, action.microbatch, action.slice}), kind);
}

std::optional<ActionPlace> ScheduleIndex::source(const Action& action) const {
  if (action.kind == forward) return neighbour(action, action.stage - 1);
  if (is_input_backward(action)) return neighbour(action, action.stage + 1);
  return std::nullopt;
}

std::optional<ActionPlace> ScheduleIndex::target(const Action& action) const {
  if (action.kind == forward) return neighbour(action, action.stage + 1);
  if (is_input_backward(action)) return neighbour(action, action.stage - 1);
  return std::nullopt;
}

}  // namespace shardproof::plan
