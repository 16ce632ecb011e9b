// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_completeness.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;
using Count = unsigned __int128;  // stages x microbatches x slices of a file may be beyond 64 bits

constexpr std::array parts = {forward, backward_input, backward_weight};

/// B counts as I and W, U as nothing.
std::span<const ActionKind> parts_of(ActionKind kind) {
  const std::span<const ActionKind> all = parts;
  switch (kind) {
    case forward: return all.subspan(0, 1);
    case backward_input: return all.subspan(1, 1);
    case backward_weight: return all.subspan(2, 1);
    case backward: return all.subspan(1, 2);
    case update: break;
  }
  return {};
}

Action with(Action action, ActionKind kind) {
  action.kind = kind;
  return action;
}

std::int64_t actions_of(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const auto& actions : schedule.ranks) count += std::ssize(actions);
  return count;
}

class Completeness {
 public:
  Completeness(const Schedule& schedule, const ScheduleExtent& extent, ScheduleFindings& findings)
      : schedule_(schedule), extent_(extent), findings_(findings), actions_(actions_of(schedule)) {}

  void find() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      if (schedule_.ranks[rank].empty())
        findings_.add(std::int64_t(rank), ScheduleFinding::nowhere, [] { return "there is no action"; });
      for (const Action& a : schedule_.ranks[rank]) rank_of_stage_.try_emplace(a.stage, std::int64_t(rank));
    }
    if (extent_.units() > actions_) return too_few();
    rank_of_.resize(static_cast<std::size_t>(3 * extent_.units()), -1);
    home_.resize(static_cast<std::size_t>(extent_.units()), -1);
    each([&](const Action& a) {  // the first F of a unit says on which rank all of it belongs
      if (a.kind == forward && exists(a) && home_[unit(a)] < 0) home_[unit(a)] = rank_;
    });
    each([&](const Action& a) { visit(a); });
    missing(extent_.units(), static_cast<Count>(3 * extent_.units()) - count_,
            [&](std::size_t part) { return rank_of_[part] >= 0; });
  }

 private:
  void each(const auto& visit) {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      for (std::size_t at = 0; at < schedule_.ranks[rank].size(); ++at) {
        rank_ = static_cast<std::int64_t>(rank), at_ = static_cast<std::int64_t>(at);
        visit(schedule_.ranks[rank][at]);
      }
  }

  bool exists(const Action& a) const {
    return a.stage >= 0 && a.stage < extent_.stages && a.microbatch >= 0 && a.microbatch < extent_.microbatches &&
           (extent_.slices == 0 ? a.slice == Action::whole : a.slice >= 0 && a.slice < extent_.slices);
  }
  std::size_t unit(const Action& a) const {
    const std::int64_t slice = std::max<std::int64_t>(a.slice, 0);
    return static_cast<std::size_t>((a.stage * extent_.microbatches + a.microbatch) * extent_.parts() + slice);
  }
  std::size_t part(const Action& a) const { return 3 * unit(a) + static_cast<std::size_t>(a.kind); }

  /// `text()`: what is wrong with the action that is visited.
  void add(const Action& a, const auto& text) {
    findings_.add(rank_, at_, [&] { return fmt::format("{} {}", print(a), text()); });
  }

  void visit(const Action& a) {
    if (a.stage < 0 || a.stage >= extent_.stages)
      return add(a, [&] { return fmt::format("is of stage {}: they are 0 to {}", a.stage, extent_.stages - 1); });
    if (a.microbatch < 0 || a.microbatch >= extent_.microbatches)
      return add(a, [&] {
        return fmt::format("is of microbatch {}: they are 0 to {}", a.microbatch, extent_.microbatches - 1);
      });
    if (a.kind == update) return visit_update(a);
    if (a.slice == Action::whole && extent_.slices > 0)
      return add(
          a, [&] { return fmt::format("is of a whole sequence, where others are cut in {} slices", extent_.slices); });
    if (!exists(a))
      return add(a, [&] {
        return extent_.slices == 0 ? "is of a slice, where others are of whole sequences"
                                   : fmt::format("is of slice {}: they are 0 to {}", a.slice, extent_.slices - 1);
      });
    const bool stays = a.kind == forward || is_home(a);
    for (const ActionKind kind : parts_of(a.kind)) {
      const Action one = with(a, kind);
      if (kind != forward && stays) needs(a, with(a, kind == backward_input ? forward : backward_input));
      if (const auto before = slice_before(one); before && stays) needs(a, *before);
      std::int64_t& there = rank_of_[part(one)];
      if (there >= 0)
        add(a, [&] {
          return (kind == a.kind ? std::string("is doubled") : fmt::format("doubles {}", print(one))) +
                 (there == rank_ ? "" : fmt::format(": it is on rank {} too", there));
        });
      else
        there = rank_, ++count_;
    }
  }

  void visit_update(const Action& a) {
    if (a.slice != Action::whole) return add(a, [] { return "is of a slice: an update is of a stage"; });
    for (std::int64_t k = 0; k < extent_.parts(); ++k) {
      const Action weights{a.stage, backward_weight, a.microbatch, extent_.slices == 0 ? Action::whole : k};
      if (!is_home(weights, a) || !needs(a, weights)) return;
    }
  }

  /// Whether the F of `unit_of` is on this rank, or nowhere; else that is said of `a`.
  bool is_home(const Action& unit_of, const Action& a) {
    const std::int64_t home = home_[unit(unit_of)];
    if (home < 0 || home == rank_) return true;
    add(a, [&] { return fmt::format("belongs on rank {}, where {} is", home, print(with(unit_of, forward))); });
    return false;
  }
  bool is_home(const Action& a) { return is_home(a, a); }

  bool needs(const Action& a, const Action& before) {
    const std::int64_t there = rank_of_[part(before)];
    if (there < 0)
      add(a, [&] { return fmt::format("comes before {}", print(before)); });
    else if (there != rank_)
      add(a, [&] { return fmt::format("belongs on rank {}, where {} is", there, print(before)); });
    return there == rank_;
  }

  /// The slice that F or I of this one comes after.
  std::optional<Action> slice_before(Action a) const {
    if (extent_.slices == 0 || a.kind == backward_weight) return std::nullopt;
    a.slice += a.kind == forward ? -1 : 1;
    return a.slice >= 0 && a.slice < extent_.slices ? std::optional(a) : std::nullopt;
  }

  /// Each unit takes two actions, F and B, or more. Of the first units, of which some must be missing, says which.
  void too_few() {
    const std::int64_t first = std::min(extent_.units(), actions_ + 4);  // 3 (n + 4), of which at most 2 n are there
    std::vector<bool> there(static_cast<std::size_t>(3 * first));
    Count present = 0;
    each([&](const Action& a) {
      if (!exists(a)) return;
      const Count unit =
          (static_cast<Count>(a.stage) * static_cast<Count>(extent_.microbatches) + static_cast<Count>(a.microbatch)) *
              static_cast<Count>(extent_.parts()) +
          static_cast<Count>(std::max<std::int64_t>(a.slice, 0));
      for (const ActionKind kind : parts_of(a.kind)) {
        ++present;
        if (unit < static_cast<Count>(first)) there[part(with(a, kind))] = true;
      }
    });
    findings_.add(ScheduleFinding::nowhere, ScheduleFinding::nowhere, [&] {
      return fmt::format("{} action{} cannot be all of {} stage{} and {} microbatch{}{}", actions_,
                         actions_ == 1 ? "" : "s", extent_.stages, extent_.stages == 1 ? "" : "s", extent_.microbatches,
                         extent_.microbatches == 1 ? "" : "es",
                         extent_.slices == 0 ? "" : fmt::format(" in {} slices", extent_.slices));
    });
    const Count all = static_cast<Count>(extent_.stages) * static_cast<Count>(extent_.microbatches) *
                      static_cast<Count>(extent_.parts());
    missing(first, 3 * all - present, [&](std::size_t k) { return bool(there[k]); });
  }

  /// `count`: how many, or at least, where some are doubled. They are looked for among the first units.
  void missing(std::int64_t units, Count count, const auto& is_there) {
    constexpr std::int64_t shown = 10;
    std::int64_t found = 0;
    for (std::int64_t unit = 0; unit < units && found < shown && static_cast<Count>(found) < count; ++unit)
      for (const ActionKind kind : parts) {
        const auto at = static_cast<std::size_t>(3 * unit) + static_cast<std::size_t>(kind);
        if (found == shown || is_there(at)) continue;
        const std::int64_t slice = unit % extent_.parts(), whole = unit / extent_.parts();
        const Action a{whole / extent_.microbatches, kind, whole % extent_.microbatches,
                       extent_.slices == 0 ? Action::whole : slice};
        findings_.add(rank_that_lacks(a), ScheduleFinding::nowhere,
                      [&] { return fmt::format("{} is missing", print(a)); });
        ++found;
      }
    if (count > static_cast<Count>(found))
      findings_.add(ScheduleFinding::nowhere, ScheduleFinding::nowhere,
                    [&] { return fmt::format("{} more actions are missing", count - static_cast<Count>(found)); });
  }

  /// That of other parts of its unit, or the first of its stage.
  std::int64_t rank_that_lacks(const Action& a) const {
    for (const ActionKind kind : parts)
      if (!rank_of_.empty() && rank_of_[part(with(a, kind))] >= 0) return rank_of_[part(with(a, kind))];
    const auto first = rank_of_stage_.find(a.stage);
    return first == rank_of_stage_.end() ? ScheduleFinding::nowhere : first->second;
  }

  const Schedule& schedule_;
  const ScheduleExtent extent_;
  ScheduleFindings& findings_;
  const std::int64_t actions_;
  std::unordered_map<std::int64_t, std::int64_t> rank_of_stage_;  // the first
  // Of each part the rank that has it, of each unit the rank of its F; or -1.
  std::vector<std::int64_t> rank_of_, home_;
  Count count_ = 0;                 // of the parts that are there
  std::int64_t rank_ = 0, at_ = 0;  // of the action that is visited
};

}  // namespace

void find_incomplete(const Schedule& schedule, const ScheduleExtent& extent, ScheduleFindings& findings) {
  Completeness(schedule, extent, findings).find();
}

}  // namespace shardproof::plan
