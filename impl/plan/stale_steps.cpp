// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/stale_steps.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "impl/plan/schedule_updates.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

class Steps {
 public:
  Steps(const Schedule& schedule, const ScheduleIndex& index, std::int64_t parts)
      : schedule_(schedule),
        index_(index),
        parts_(parts),
        steps_(index.extent().microbatches / parts),
        of_update_(microbatches_per_update(schedule, index.extent())),
        done_(schedule.ranks.size(), 0),
        due_(schedule.ranks.size(), 0),
        by_step_(schedule.ranks.size()) {}

  std::vector<std::vector<std::size_t>> cut() && {
    for (std::int64_t step = 1; step <= steps_; ++step) {
      for (std::size_t rank = 0; rank < done_.size(); ++rank) find_ends(rank, step);
      while (run_what_is_due()) {
      }
      for (std::size_t rank = 0; rank < done_.size(); ++rank) {
        if (step == steps_) done_[rank] = schedule_.ranks[rank].size();
        require_own_updates(rank, step);
        require_last_gradients(rank);
        by_step_[rank].push_back(done_[rank]);
      }
    }
    return std::move(by_step_);
  }

 private:
  /// Of losses and updates, with which a step ends; 0: of neither.
  std::int64_t step_that_ends_with(const Action& a) const {
    if (a.kind == ActionKind::forward && a.stage + 1 == index_.extent().stages) return a.microbatch / parts_ + 1;
    if (a.kind != ActionKind::update) return 0;
    const std::int64_t of = of_update_[static_cast<std::size_t>(a.stage)];
    return std::min(((a.microbatch / of + 1) * of + parts_ - 1) / parts_, steps_);
  }

  void find_ends(std::size_t rank, std::int64_t step) {
    const auto& actions = schedule_.ranks[rank];
    for (std::size_t at = due_[rank]; at < actions.size(); ++at) {
      const std::int64_t end = step_that_ends_with(actions[at]);
      if (end > step && actions[at].kind == ActionKind::update) return;
      if (end > 0 && end <= step) due_[rank] = at + 1;
    }
  }

  /// Once over all ranks; whether anything ran.
  bool run_what_is_due() {
    bool ran = false;
    for (std::size_t rank = 0; rank < done_.size(); ++rank)
      for (; done_[rank] < due_[rank]; ++done_[rank], ran = true) {
        const Action& action = schedule_.ranks[rank][done_[rank]];
        if (const auto source = index_.source(action); source && *source) needs(*source);
        const auto target = index_.target(action);
        if (!target || target->rank == static_cast<std::int32_t>(rank)) continue;
        auto& sent = sent_[{rank, target->rank, action.kind == ActionKind::forward}];
        sent.push_back(*target);
        if (const std::int64_t over = std::ssize(sent) - schedule_.send_depth; over > 0)
          needs(sent[static_cast<std::size_t>(over - 1)]);
      }
    return ran;
  }
  void needs(const ActionPlace& place) {
    std::size_t& due = due_[static_cast<std::size_t>(place.rank)];
    due = std::max(due, static_cast<std::size_t>(place.at) + 1);
  }

  std::size_t begin_of_step(std::size_t rank) const { return by_step_[rank].empty() ? 0 : by_step_[rank].back(); }

  /// Of what runs in the step: a later step would find its update made, and its gradients gone.
  void require_own_updates(std::size_t rank, std::int64_t step) const {
    for (std::size_t at = begin_of_step(rank); at < done_[rank]; ++at) {
      const Action& action = schedule_.ranks[rank][at];
      if (action.kind == ActionKind::update && step_that_ends_with(action) != step)
        throw NotSupported("schedule: " + print(action) + " would have to run in step " + std::to_string(step) +
                           ", for what this step needs of rank " + std::to_string(rank) + " stands behind it: it is " +
                           "the update of step " + std::to_string(step_that_ends_with(action)));
    }
  }

  /// Between a stage's update and the end of its step nothing adds to the stage's gradients.
  void require_last_gradients(std::size_t rank) const {
    const auto& actions = schedule_.ranks[rank];
    std::map<std::int64_t, const Action*> updates;  // of the step, by stage
    for (std::size_t at = begin_of_step(rank); at < done_[rank]; ++at) {
      const Action& action = actions[at];
      if (action.kind == ActionKind::update) updates[action.stage] = &action;
      if (is_weight_backward(action) && updates.contains(action.stage))
        throw NotSupported("schedule: " + print(action) + " has to run before the step of " +
                           print(*updates.at(action.stage)) + " ends, whose gradients are observed then");
    }
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  const std::int64_t parts_, steps_;
  const std::vector<std::int64_t> of_update_;
  std::vector<std::size_t> done_, due_;
  std::map<std::tuple<std::size_t, std::int32_t, bool>, std::vector<ActionPlace>> sent_;  // who receives, by direction
  std::vector<std::vector<std::size_t>> by_step_;
};

}  // namespace

std::vector<std::vector<std::size_t>> actions_by_step(const Schedule& schedule, const ScheduleIndex& index,
                                                      std::int64_t parts) {
  return Steps(schedule, index, parts).cut();
}

StaleOrder stale_order(const Schedule& schedule, std::int64_t parts) {
  const ScheduleIndex index(schedule, extent_of(schedule));
  return {actions_by_step(schedule, index, parts), weight_versions(schedule, index).read,
          microbatches_per_update(schedule, index.extent())};
}

}  // namespace shardproof::plan
