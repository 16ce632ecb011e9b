// SPDX-License-Identifier: Apache-2.0
// Where the actions of a schedule stand, found in constant time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// How many of each there are; slices is 0 where sequences are whole.
struct ScheduleExtent {
  std::int64_t stages = 0, microbatches = 0, slices = 0;
  /// Of a sequence.
  std::int64_t parts() const { return slices == 0 ? 1 : slices; }
  /// (stage, microbatch, slice) triples, each of which needs F, I and W; at most the greatest of the type.
  std::int64_t units() const;
};
/// The least that holds all actions of the schedule.
ScheduleExtent extent_of(const Schedule& schedule);
/// What a generator makes for the shape.
ScheduleExtent extent_of(const ScheduleShape& shape);

struct ActionPlace {
  std::int32_t rank = -1, at = -1;  ///< at: of the rank's actions
  explicit operator bool() const { return rank >= 0; }
  bool operator==(const ActionPlace&) const = default;
};

/// F, I and W of every unit; B is both of the last two. Memory is linear in units.
class ScheduleIndex {
 public:
  /// All actions but U must lie within the extent. The schedule outlives the index.
  ScheduleIndex(const Schedule& schedule, const ScheduleExtent& extent);

  const ScheduleExtent& extent() const { return extent_; }
  std::int64_t unit(const Action& action) const {
    return (action.stage * extent_.microbatches + action.microbatch) * extent_.parts() +
           (extent_.slices == 0 ? 0 : action.slice);
  }
  /// The first one; none where there is none. `kind` is F, I or W.
  ActionPlace place(std::int64_t unit, ActionKind kind) const {
    return places_[static_cast<std::size_t>(3 * unit + static_cast<std::int64_t>(kind))];
  }
  const Action& action(const ActionPlace& place) const {
    return schedule_.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.at)];
  }

  /// What an action's input comes from over the stages' order: F from the stage before, I and B from the one after;
  /// none at the ends of the model, nor for W and U.
  std::optional<ActionPlace> source(const Action& action) const;
  /// Who waits for what it makes.
  std::optional<ActionPlace> target(const Action& action) const;

 private:
  std::optional<ActionPlace> neighbour(const Action& action, std::int64_t stage) const;

  const Schedule& schedule_;
  const ScheduleExtent extent_;
  std::vector<ActionPlace> places_;
};

/// B is I, then W; others are themselves.
inline bool is_input_backward(const Action& a) {
  return a.kind == ActionKind::backward_input || a.kind == ActionKind::backward;
}
inline bool is_weight_backward(const Action& a) {
  return a.kind == ActionKind::backward_weight || a.kind == ActionKind::backward;
}

}  // namespace shardproof::plan
