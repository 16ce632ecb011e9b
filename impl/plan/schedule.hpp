// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule as data: per rank the actions in their order. The text form is that of PyTorch's pipelining
// package: one line of comma-separated actions per rank, "0F0,0F1,0B0,0B1"; an empty field is an idle slot.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::plan {

/// F forward; I backward for inputs; W backward for weights; B: I, then W; U update of the stage to its next version.
enum class ActionKind : std::uint8_t { forward, backward_input, backward_weight, backward, update };
char letter_of(ActionKind kind);

struct Action {
  std::int64_t stage = 0;
  ActionKind kind = ActionKind::forward;
  std::int64_t microbatch = 0;
  bool operator==(const Action&) const = default;
};
std::string print(const Action& action);

struct Schedule {
  std::vector<std::vector<Action>> ranks;  ///< by pp coordinate
  /// How far a sender may be ahead, or there is a deadlock: a send returns once at most so many messages of its
  /// direction to that receiver are undelivered; 0 is a rendezvous. It is proven with this, and runs with at least
  /// this. The text form does not hold it.
  std::int64_t send_depth = 0;
  bool operator==(const Schedule&) const = default;
};
std::string print(const Schedule& schedule);
/// Throws BadInput with line, column and every error.
Schedule parse_schedule(std::string_view text);

struct ScheduleShape {
  std::int64_t ranks = 1, microbatches = 1;
};

/// The technique behind `schedule=NAME`: impl/plan/schedules/NAME.cpp.
struct ScheduleGenerator {
  std::string_view name, paper;
  Schedule (*generate)(const ScheduleShape& shape);
};
/// All, in the order of impl/plan/CMakeLists.txt (generated).
std::span<const ScheduleGenerator* const> schedules();
/// Throws BadInput, naming the nearest.
const ScheduleGenerator& schedule_generator(std::string_view name);

/// The pp coordinate that runs a stage: stages are dealt out in turn.
inline std::int64_t rank_of_stage(std::int64_t stage, std::int64_t ranks) { return stage % ranks; }

}  // namespace shardproof::plan
