// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/weight_versions.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "impl/plan/schedule_updates.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

/// The versions of one stage on one rank that are kept: the newest, and those that something still reads.
class Kept {
 public:
  /// Before anything runs: one action more will be done with this version.
  void will_read(std::int64_t version) { ++readers_[version]; }
  /// At the beginning version 0 is there.
  std::int64_t count() const { return old_ + 1; }
  void update() {
    old_ += readers_.contains(newest_) ? 1 : 0;
    ++newest_;
  }
  void has_read(std::int64_t version) {
    const auto readers = readers_.find(version);
    if (--readers->second > 0) return;
    readers_.erase(readers);
    old_ -= version < newest_ ? 1 : 0;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> readers_;
  std::int64_t newest_ = 0, old_ = 0;  // old_: of those before the newest
};

class Versions {
 public:
  Versions(const Schedule& schedule, const ScheduleIndex& index)
      : schedule_(schedule),
        index_(index),
        of_forward_(static_cast<std::size_t>(index.extent().units()), -1),
        of_update_(microbatches_per_update(schedule, index.extent())) {
    result_.read.resize(schedule.ranks.size());
    result_.most_kept.resize(schedule.ranks.size());
    if (schedule.weights == WeightRule::vertical_sync)  // other stages read what stage 0 met, on any rank
      for (const auto& actions : schedule.ranks) meet_stage_0(actions);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) read(rank);
    if (findings_.empty())
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) result_.most_kept[rank] = most_kept(rank);
    result_.findings = std::move(findings_).list();
  }

  WeightVersions result() && { return std::move(result_); }

 private:
  void meet_stage_0(const std::vector<Action>& actions) {
    std::int64_t updates = 0;
    for (const Action& a : actions) {
      if (a.stage != 0) continue;
      if (a.kind == update) ++updates;
      if (a.kind == forward && a.slice <= 0) version(a) = updates;
    }
  }

  void read(std::size_t rank) {
    std::map<std::int64_t, std::int64_t> newest;  // of each stage
    const auto& actions = schedule_.ranks[rank];
    for (std::size_t at = 0; at < actions.size(); ++at) {
      const Action& a = actions[at];
      std::int64_t& updates = newest[a.stage];
      if (a.kind == update) ++updates;
      // A later slice of a sequence reads what the first did.
      if (a.kind == forward && a.slice <= 0) version(a) = wanted(a, updates);
      result_.read[rank].push_back(a.kind == update ? updates : version(a));
      if (a.kind == forward)
        if (const std::string why = wrong(a, updates); !why.empty())
          findings_.add(static_cast<std::int64_t>(rank), static_cast<std::int64_t>(at),
                        [&] { return fmt::format("{} reads {}", print(a), why); });
    }
  }

  std::int64_t& version(Action a) {
    a.slice = std::min<std::int64_t>(a.slice, 0);
    return of_forward_[static_cast<std::size_t>(index_.unit(a))];
  }

  std::string wrong(const Action& a, std::int64_t newest) {
    const std::int64_t m = of_update_[static_cast<std::size_t>(a.stage)];
    if (const std::int64_t met = met_at_stage_0(a); schedule_.weights == WeightRule::vertical_sync && met % m != 0)
      return fmt::format("the weights of {} minibatches, as at stage 0: stage {} has them of multiples of {}", met,
                         a.stage, m);
    if (version(a) <= newest) return "";
    return fmt::format("version {} of stage {}'s weights before it is written: there {} been {}", version(a), a.stage,
                       newest == 1 ? "has" : "have",
                       newest == 1 ? std::string("1 update") : fmt::format("{} updates", newest));
  }

  std::int64_t most_kept(std::size_t rank) const {
    std::map<std::int64_t, Kept> stages;
    const auto& actions = schedule_.ranks[rank];
    const auto& read = result_.read[rank];
    for (std::size_t at = 0; at < actions.size(); ++at)
      if (is_weight_backward(actions[at])) stages[actions[at].stage].will_read(read[at]);
    std::int64_t kept = std::ssize(stages), most = kept;
    for (std::size_t at = 0; at < actions.size(); ++at) {
      Kept& here = stages.at(actions[at].stage);
      kept -= here.count();
      if (actions[at].kind == update) here.update();
      if (is_weight_backward(actions[at])) here.has_read(read[at]);
      kept += here.count();
      most = std::max(most, kept);
    }
    return most;
  }

  std::int64_t wanted(const Action& a, std::int64_t newest) {
    const std::int64_t m = of_update_[static_cast<std::size_t>(a.stage)];
    switch (schedule_.weights) {
      case WeightRule::flushed: return 0;
      case WeightRule::stashed: return newest;
      case WeightRule::vertical_sync: return met_at_stage_0(a) / m;
      case WeightRule::double_buffered: return std::max<std::int64_t>(a.microbatch / m - 1, 0);
    }
    return 0;
  }

  /// In minibatches that its weights there had seen; updates of different stages may be of different numbers.
  std::int64_t met_at_stage_0(Action a) {
    a.stage = 0;
    return version(a) * of_update_[0];
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  std::vector<std::int64_t> of_forward_;
  const std::vector<std::int64_t> of_update_;  // microbatches, by stage
  ScheduleFindings findings_;
  WeightVersions result_;
};

}  // namespace

WeightVersions weight_versions(const Schedule& schedule, const ScheduleIndex& index) {
  return Versions(schedule, index).result();
}

}  // namespace shardproof::plan
