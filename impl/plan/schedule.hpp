// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule as data: per rank the actions in their order. The text form is that of PyTorch's pipelining
// package: one line of comma-separated actions per rank, "0F0,0F1,0B0,0B1"; an empty field is an idle slot.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "suites/workload/workload.hpp"

namespace shardproof::plan {

/// F forward; I backward for inputs; W backward for weights; B: I, then W; U update of the stage to its next version,
/// after the W of its microbatch. Ranks that hold the stage sum its gradients in their U and wait there for each other.
enum class ActionKind : std::uint8_t { forward, backward_input, backward_weight, backward, update };
char letter_of(ActionKind kind);

/// `slice`, counted in time from 0, of a sequence that is cut: F goes through them forwards, I backwards.
struct Action {
  static constexpr std::int64_t whole = -1;

  std::int64_t stage = 0;
  ActionKind kind = ActionKind::forward;
  std::int64_t microbatch = 0;
  std::int64_t slice = whole;
  bool operator==(const Action&) const = default;
};
/// "0F1", "0F1.2"
std::string print(const Action& action);

/// Which version of a stage's weights an action reads; version v is what v updates of the stage have made. Which
/// updates there must be: schedule_updates.hpp.
enum class WeightRule : std::uint8_t {
  flushed,        ///< version 0: no action of a stage comes after an update of it
  stashed,        ///< F the latest; what follows from it the same (Narayanan et al. 2019, section 3.3)
  vertical_sync,  ///< the weights of as many minibatches as the microbatch met at stage 0 (ibid.): where stages are on
                  ///< several ranks, an update is of so many minibatches
  double_buffered,  ///< that of max(floor(k/m) - 1, 0) updates for microbatch k, m between updates (Narayanan et al.
                    ///< 2021b, section 3.1)
};
/// "double_buffered"
std::string print(WeightRule rule);
/// In the order of the rules.
std::span<const std::string_view> weight_rule_names();
/// Throws BadInput, naming the nearest.
WeightRule weight_rule(std::string_view name);

struct Schedule {
  std::vector<std::vector<Action>> ranks = {};  ///< by pp coordinate
  /// How far a sender may be ahead: a send returns once at most so many messages of its direction to that receiver are
  /// undelivered; 0 is a rendezvous. The schedule is proven with this, and runs with at least this; with less some
  /// schedules are a deadlock. The text form does not hold it, nor what follows.
  std::int64_t send_depth = 0;
  WeightRule weights = WeightRule::flushed;
  bool operator==(const Schedule&) const = default;
};
std::string print(const Schedule& schedule);
/// Reads PyTorch's files with communication too: sends, receives and (un)sharding are left out, for they are derived;
/// "(0F1;1B0)OVERLAP_F_B" is F, then B. Throws BadInput with line, column and every error, or for more than 2^20 ranks.
Schedule parse_schedule(std::string_view text);

/// Where the actions of a text stand, for messages: of each rank's actions the column, counted from 1.
using Columns = std::vector<std::vector<std::uint32_t>>;
Schedule parse_schedule(std::string_view text, Columns& columns);

struct ScheduleFile;

/// Numbers are from 1 where nothing else is said.
struct ScheduleShape {
  std::int64_t ranks = 1, microbatches = 1;
  std::int64_t chunks = 1;                   ///< stages that a rank holds, of those schedules that may hold several
  std::int64_t slices = 1;                   ///< of a sequence in time
  std::int64_t microbatches_per_update = 0;  ///< of pipedream_2bw; 0: as many as there are ranks
  std::vector<std::int64_t> replicas = {};   ///< of each stage of pipedream, sum = ranks; empty: one each
  bool vertical_sync = false;                ///< of pipedream
  std::shared_ptr<const ScheduleFile> file = {};  ///< of file:PATH alone (schedule_file.hpp)

  /// 0 of a file in which something is wrong.
  std::int64_t stages() const;
};

/// The technique behind `schedule=NAME`: impl/plan/schedules/NAME.cpp.
struct ScheduleGenerator {
  std::string_view name, alias = {};
  std::string_view meaning = {};  ///< what it does, in a few words
  std::string_view paper;
  /// "" for a shape that it can serve; else why not, and the nearest legal values. Of ranks, microbatches, chunks and
  /// slices from 1.
  std::string (*refusal)(const ScheduleShape& shape);
  /// Precondition: no refusal.
  Schedule (*generate)(const ScheduleShape& shape);
  /// Its usual chunks, as zb_v's 2; where more than one may be chosen, the least that makes sense. 0: a file's own.
  std::int64_t chunks = 1;
  /// Of one that updates without a flush: the sequential program that it is.
  workload::StaleProgram::Rule stale = workload::StaleProgram::Rule::none;
};
/// All, in the order of impl/plan/CMakeLists.txt (generated).
std::span<const ScheduleGenerator* const> schedules();
/// Of a name or an alias; of file:PATH schedule_of_file (schedule_file.hpp). Throws BadInput, naming the nearest.
const ScheduleGenerator& schedule_generator(std::string_view name);
/// Throws NotSupported with the generator's reason, BadInput for a number below 1.
Schedule generate(const ScheduleGenerator& generator, const ScheduleShape& shape);

}  // namespace shardproof::plan
