// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/weight_versions.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "impl/plan/checker.hpp"

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

class Reader {
 public:
  Reader(const Schedule& schedule, const ScheduleIndex& index)
      : schedule_(schedule),
        index_(index),
        of_forward_(static_cast<std::size_t>(index.extent().units()), -1),
        per_update_(microbatches_per_update(schedule, index.extent().microbatches)) {
    // vertical_sync reads what stage 0 saw: its ranks come first.
    std::vector<std::size_t> order;
    for (const bool first : {true, false})
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
        if (std::ranges::any_of(schedule.ranks[rank], [](const Action& a) { return a.stage == 0; }) == first)
          order.push_back(rank);
    result_.read.resize(schedule.ranks.size());
    result_.most_kept.resize(schedule.ranks.size());
    for (const std::size_t rank : order) read(rank);
    if (result_.findings.empty())
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) result_.most_kept[rank] = most_kept(rank);
    std::ranges::sort(result_.findings, {}, [](const ScheduleFinding& f) { return std::pair(f.rank, f.at); });
  }

  WeightVersions result() && { return std::move(result_); }

 private:
  void read(std::size_t rank) {
    std::map<std::int64_t, std::int64_t> newest;  // of each stage
    const auto& actions = schedule_.ranks[rank];
    for (std::size_t at = 0; at < actions.size(); ++at) {
      const Action& a = actions[at];
      const auto find = [&](const std::string& text) {
        result_.findings.push_back(
            {static_cast<std::int64_t>(rank), static_cast<std::int64_t>(at), fmt::format("{} {}", print(a), text)});
      };
      std::int64_t& updates = newest[a.stage];
      if (a.kind == update) ++updates;
      if (a.kind == forward) go_forward(a, updates, find);
      result_.read[rank].push_back(a.kind == update ? updates : version(a));
    }
  }

  std::int64_t& version(const Action& a) { return of_forward_[static_cast<std::size_t>(index_.unit(a))]; }

  void go_forward(const Action& a, std::int64_t newest, const auto& find) {
    const std::int64_t read = version(a) = wanted(a, newest);
    if (read > newest)
      find(fmt::format("reads version {} of stage {}'s weights before it is written: {} updates have been made", read,
                       a.stage, newest));
    else if (schedule_.weights == WeightRule::flushed && newest > 0)
      find(fmt::format("comes after an update of stage {}, and its schedule flushes before updates", a.stage));
    else if (schedule_.weights == WeightRule::double_buffered && read + 1 < newest)
      find(fmt::format("reads version {} of stage {}'s weights, of which versions {} and {} are kept", read, a.stage,
                       newest - 1, newest));
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
    switch (schedule_.weights) {
      case WeightRule::flushed: return 0;
      case WeightRule::stashed: return newest;
      case WeightRule::vertical_sync: return a.stage == 0 ? newest : of_stage_0(a);
      case WeightRule::double_buffered: return std::max<std::int64_t>(a.microbatch / per_update_ - 1, 0);
    }
    return 0;
  }

  std::int64_t of_stage_0(Action a) const {
    a.stage = 0;
    return of_forward_[static_cast<std::size_t>(index_.unit(a))];
  }

  static std::int64_t microbatches_per_update(const Schedule& schedule, std::int64_t none) {
    std::int64_t first = none;
    for (const auto& actions : schedule.ranks)
      for (const Action& a : actions)
        if (a.kind == update) first = std::min(first, a.microbatch + 1);
    return first;
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  std::vector<std::int64_t> of_forward_;
  const std::int64_t per_update_;
  WeightVersions result_;
};

}  // namespace

WeightVersions weight_versions(const Schedule& schedule, const ScheduleIndex& index) {
  return Reader(schedule, index).result();
}

}  // namespace shardproof::plan
