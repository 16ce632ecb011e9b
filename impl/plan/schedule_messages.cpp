// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_messages.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

/// Runs a complete schedule: each rank goes on until it waits for a message, for a receiver, or in an update for the
/// other ranks of the stage.
class Messages {
 public:
  Messages(const Schedule& schedule, const ScheduleIndex& index)
      : schedule_(schedule),
        index_(index),
        at_(schedule.ranks.size()),
        holders_(static_cast<std::size_t>(index.extent().stages)),
        arrived_(holders_.size()),
        meetings_(holders_.size()) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (const Action& a : schedule.ranks[rank])
        if (auto& ranks = holders_[static_cast<std::size_t>(a.stage)]; ranks.empty() || ranks.back() != rank)
          ranks.push_back(rank);
  }

  std::optional<ScheduleFinding> deadlock() {
    for (std::size_t rank = at_.size(); rank-- > 0;) awake_.push_back(rank);
    while (!awake_.empty()) {
      const std::size_t rank = awake_.back();
      awake_.pop_back();
      while (step(rank)) {
      }
    }
    for (std::size_t rank = 0; rank < at_.size(); ++rank)
      if (!finished(rank)) return circle(rank);
    return std::nullopt;
  }

 private:
  /// Where a rank is: before its next action, in the send after it, or in the sum of it over the stage's ranks.
  enum class Phase : std::uint8_t { before, sending, meeting };
  struct Place {
    std::size_t action = 0;
    Phase phase = Phase::before;
    std::int64_t meeting = 0;  // that ends it
  };
  /// Undelivered messages, by what made them, in the order in which they were sent and arrive.
  using Link = std::deque<ActionPlace>;

  bool finished(std::size_t rank) const { return at_[rank].action == schedule_.ranks[rank].size(); }
  const Action& action(std::size_t rank) const { return schedule_.ranks[rank][at_[rank].action]; }
  Link& link(std::int32_t from, std::int32_t to, bool is_forward) {
    const auto pair = static_cast<std::uint64_t>(from) * at_.size() + static_cast<std::uint64_t>(to);
    return undelivered_[2 * pair + (is_forward ? 1 : 0)];
  }
  Link& link_to(std::size_t rank, const ActionPlace& target, const Action& a) {
    return link(static_cast<std::int32_t>(rank), target.rank, a.kind == forward);
  }
  Link& link_from(const ActionPlace& source, std::size_t rank, const Action& a) {
    return link(source.rank, static_cast<std::int32_t>(rank), a.kind == forward);
  }

  bool step(std::size_t rank) {
    if (finished(rank)) return false;
    Place& at = at_[rank];
    switch (at.phase) {
      case Phase::before:
        if (!begin(rank)) return false;
        break;
      case Phase::sending: {
        const Link& sent = link_to(rank, *index_.target(action(rank)), action(rank));
        if (static_cast<std::int64_t>(sent.size()) > schedule_.send_depth) return false;
        at.phase = Phase::before;
        break;
      }
      case Phase::meeting:
        if (meetings_[stage(rank)] < at.meeting) return false;
        at.phase = Phase::before;
        break;
    }
    if (at.phase == Phase::before) ++at.action;
    return true;
  }

  /// False where it must wait; else it is done, but for what its phase then says.
  bool begin(std::size_t rank) {
    Place& at = at_[rank];
    const Action& a = action(rank);
    if (a.kind == update) {
      meet(rank);
      return true;
    }
    if (const auto source = index_.source(a)) {
      if (source->rank == static_cast<std::int32_t>(rank)) {
        if (static_cast<std::size_t>(source->at) >= at.action) return false;
      } else {
        Link& arriving = link_from(*source, rank, a);
        if (arriving.empty() || arriving.front() != *source) return false;
        arriving.pop_front();
        awake_.push_back(static_cast<std::size_t>(source->rank));  // it may wait to be received
      }
    }
    if (const auto target = index_.target(a); target && target->rank != static_cast<std::int32_t>(rank)) {
      link_to(rank, *target, a).push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(at.action)});
      awake_.push_back(static_cast<std::size_t>(target->rank));
      at.phase = Phase::sending;
    }
    return true;
  }

  void meet(std::size_t rank) {
    const std::size_t s = stage(rank);
    at_[rank].phase = Phase::meeting;
    at_[rank].meeting = meetings_[s] + 1;
    if (++arrived_[s] < holders_[s].size()) return;
    arrived_[s] = 0;
    ++meetings_[s];
    for (const std::size_t other : holders_[s])
      if (other != rank) awake_.push_back(other);
  }
  std::size_t stage(std::size_t rank) const { return static_cast<std::size_t>(action(rank).stage); }

  std::string rule() const {
    return schedule_.send_depth == 0 ? "rendezvous sends" : fmt::format("sends of depth {}", schedule_.send_depth);
  }
  /// As what is sent, B is I.
  std::string made(const ActionPlace& place) const {
    Action a = index_.action(place);
    if (a.kind == backward) a.kind = backward_input;
    return print(a);
  }
  struct Wait {
    std::size_t rank;  // for which
    std::string text;
  };
  Wait wait_of(std::size_t rank) {
    const Action& a = action(rank);
    if (at_[rank].phase == Phase::sending) {
      const auto to = static_cast<std::size_t>(index_.target(a)->rank);
      return {to, fmt::format("waits in {} for rank {} to receive", print(a), to)};
    }
    if (at_[rank].phase == Phase::meeting) {
      const auto late = std::ranges::find_if(holders_[stage(rank)], [&](std::size_t other) {
        return at_[other].phase != Phase::meeting || stage(other) != stage(rank);
      });
      return {*late, fmt::format("waits in {} for the update of rank {}", print(a), *late)};
    }
    const ActionPlace source = *index_.source(a);
    const std::string text = fmt::format("waits in {} for {} of rank {}", print(a), made(source), source.rank);
    const auto from = static_cast<std::size_t>(source.rank);
    if (from == rank) return {rank, text};
    const Link& arriving = link_from(source, rank, a);
    if (arriving.empty()) return {from, text};
    // What was sent already is behind another message, which only this rank can receive.
    return {std::ranges::find(arriving, source) == arriving.end() ? from : rank,
            fmt::format("{}, which sent {} first", text, made(arriving.front()))};
  }

  /// Each rank that cannot go on waits for another that cannot: a walk along the waits ends in a circle.
  ScheduleFinding circle(std::size_t rank) {
    std::vector<std::size_t> path;
    std::vector<bool> walked(at_.size());
    for (; !walked[rank]; rank = wait_of(rank).rank) {
      walked[rank] = true;
      path.push_back(rank);
    }
    path.erase(path.begin(), std::ranges::find(path, rank));
    std::rotate(path.begin(), std::ranges::min_element(path), path.end());
    constexpr std::size_t shown = 10;
    std::string text;
    for (std::size_t k = 0; k < std::min(path.size(), shown); ++k)
      text += fmt::format("{} rank {} {}", k == 0 ? "" : ";", path[k], wait_of(path[k]).text);
    if (path.size() > shown) text += fmt::format("; and so on over {} more ranks", path.size() - shown);
    return {static_cast<std::int64_t>(path[0]), static_cast<std::int64_t>(at_[path[0]].action),
            fmt::format("deadlock with {}:{}", rule(), text)};
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  std::vector<Place> at_;
  std::vector<std::vector<std::size_t>> holders_;  // of each stage, the ranks
  std::vector<std::size_t> arrived_;               // of those, how many are in the stage's next meeting
  std::vector<std::int64_t> meetings_;             // of each stage, that are over
  std::vector<std::size_t> awake_;                 // ranks for which something has changed since they could not go on
  std::unordered_map<std::uint64_t, Link> undelivered_;  // by sender, receiver and direction
};

}  // namespace

std::optional<ScheduleFinding> deadlock(const Schedule& schedule, const ScheduleIndex& index) {
  return Messages(schedule, index).deadlock();
}

}  // namespace shardproof::plan
