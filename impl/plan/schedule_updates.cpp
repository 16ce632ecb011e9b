// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_updates.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

bool has_updates(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const auto& actions) {
    return std::ranges::any_of(actions, [](const Action& a) { return a.kind == update; });
  });
}

/// A stage on one rank.
struct Held {
  std::vector<std::int64_t> microbatches = {};  // in their order
  std::int64_t updates = 0;                     // that were seen
  bool wrong = false;                           // the first is said
};

class Updates {
 public:
  Updates(const Schedule& schedule, const ScheduleIndex& index, ScheduleFindings& findings)
      : schedule_(schedule),
        index_(index),
        findings_(findings),
        of_update_(microbatches_per_update(schedule, index.extent())) {}

  void find() {
    const std::int64_t all = index_.extent().microbatches;
    if (const std::int64_t m = per_update(0); schedule_.weights == WeightRule::double_buffered && all % m != 0)
      findings_.add(ScheduleFinding::nowhere, ScheduleFinding::nowhere,
                    [&] { return fmt::format("{} microbatches are no multiple of the {} of an update", all, m); });
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) visit(static_cast<std::int64_t>(rank));
  }

 private:
  void visit(std::int64_t rank) {
    const auto& actions = schedule_.ranks[static_cast<std::size_t>(rank)];
    std::map<std::int64_t, Held> stages;
    for (const Action& a : actions)
      if (a.kind == forward && a.slice <= 0) stages[a.stage].microbatches.push_back(a.microbatch);
    for (auto& [stage, held] : stages) {
      std::ranges::sort(held.microbatches);
      each_update_has_one(rank, stage, held);
    }
    for (std::size_t at = 0; at < actions.size(); ++at)
      if (actions[at].kind == update) {
        Held& held = stages.at(actions[at].stage);
        if (!held.wrong) held.wrong = !is_next(rank, static_cast<std::int64_t>(at), held);
        ++held.updates;
      }
    for (const auto& [stage, held] : stages)
      if (const auto next = last_of(stage, held, held.updates); next && !held.wrong)
        findings_.add(rank, ScheduleFinding::nowhere, [&, of = stage] {
          return fmt::format("{} is missing", print({of, update, *next}));
        });
  }

  std::int64_t per_update(std::int64_t stage) const { return of_update_[static_cast<std::size_t>(stage)]; }

  /// Of an update, counted from 0, the rank's microbatches: the first, and the one after the last.
  std::pair<std::size_t, std::size_t> range(std::int64_t stage, const Held& held, std::int64_t update) const {
    const auto at = [&](std::int64_t k) {
      return static_cast<std::size_t>(std::ranges::lower_bound(held.microbatches, k * per_update(stage)) -
                                      held.microbatches.begin());
    };
    return {at(update), at(update + 1)};
  }
  std::optional<std::int64_t> last_of(std::int64_t stage, const Held& held, std::int64_t update) const {
    const auto [first, end] = range(stage, held, update);
    return first == end ? std::nullopt : std::optional(held.microbatches[end - 1]);
  }

  /// Those that sum their gradients at each update have one each: else some would wait there for others for ever.
  void each_update_has_one(std::int64_t rank, std::int64_t stage, Held& held) {
    const std::int64_t all = index_.extent().microbatches, m = per_update(stage);
    for (std::int64_t k = 0; k * m < all && !held.wrong; ++k)
      if (!last_of(stage, held, k)) {
        held.wrong = true;
        findings_.add(rank, ScheduleFinding::nowhere, [&] {
          return fmt::format("stage {}: an update is of {} microbatches, and none of {} to {} is on this rank", stage,
                             m, k * m, (k + 1) * m - 1);
        });
      }
  }

  bool is_next(std::int64_t rank, std::int64_t at, const Held& held) {
    const Action& a = schedule_.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(at)];
    const auto add = [&](const auto& text) {
      findings_.add(rank, at, [&] { return fmt::format("{} {}", print(a), text()); });
      return false;
    };
    const auto last = last_of(a.stage, held, held.updates);
    const bool any_name = schedule_.weights == WeightRule::flushed;
    if (!last)
      return add([&] {
        return fmt::format("is one more than the {} update{} of the stage", held.updates, held.updates == 1 ? "" : "s");
      });
    if (!any_name && a.microbatch != *last)
      return add([&] {
        return fmt::format("is not the update that is due: {}, after every {} of the stage's microbatches",
                           print({a.stage, update, *last}), per_update(a.stage));
      });
    const auto [first, end] = range(a.stage, held, held.updates);
    for (std::size_t k = first; k < end; ++k)
      for (std::int64_t slice = 0; slice < index_.extent().parts(); ++slice) {
        const Action weights{a.stage, backward_weight, held.microbatches[k],
                             index_.extent().slices == 0 ? Action::whole : slice};
        if (index_.place(index_.unit(weights), backward_weight).at > at)
          return add([&] { return fmt::format("comes before {}, which is of the same update", print(weights)); });
      }
    return true;
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  ScheduleFindings& findings_;
  const std::vector<std::int64_t> of_update_;
};

}  // namespace

std::vector<std::int64_t> copies_of_stages(const Schedule& schedule, std::int64_t stages) {
  std::vector<std::int64_t> copies(static_cast<std::size_t>(stages));
  for (const auto& actions : schedule.ranks) {
    std::unordered_set<std::int64_t> here;
    for (const Action& a : actions)
      if (here.insert(a.stage).second) ++copies[static_cast<std::size_t>(a.stage)];
  }
  return copies;
}

std::vector<std::int64_t> microbatches_per_update(const Schedule& schedule, const ScheduleExtent& extent) {
  if (schedule.weights == WeightRule::stashed || schedule.weights == WeightRule::vertical_sync)
    return copies_of_stages(schedule, extent.stages);
  std::int64_t all = extent.microbatches;
  if (schedule.weights == WeightRule::double_buffered) {
    // Of a stage the last of the first updates of its ranks, of all stages the first.
    std::map<std::int64_t, std::int64_t> of_stage;
    for (const auto& actions : schedule.ranks) {
      std::unordered_set<std::int64_t> here;
      for (const Action& a : actions)
        if (a.kind == update && here.insert(a.stage).second)
          of_stage[a.stage] = std::max(of_stage[a.stage], a.microbatch + 1);
    }
    for (const auto& [stage, microbatches] : of_stage) all = std::min(all, microbatches);
  }
  return std::vector<std::int64_t>(static_cast<std::size_t>(extent.stages), all);
}

void find_wrong_updates(const Schedule& schedule, const ScheduleIndex& index, ScheduleFindings& findings) {
  if (schedule.weights == WeightRule::flushed && !has_updates(schedule)) return;
  Updates(schedule, index, findings).find();
}

}  // namespace shardproof::plan
