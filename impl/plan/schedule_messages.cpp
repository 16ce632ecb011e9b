// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_messages.hpp"

#include <deque>
#include <unordered_map>

#include <fmt/format.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

/// Runs a complete schedule: each rank goes on until it waits for a message or for a receiver.
class Messages {
 public:
  Messages(const Schedule& schedule, const ScheduleIndex& index)
      : schedule_(schedule), index_(index), at_(schedule.ranks.size()) {}

  std::string deadlock() {
    for (std::size_t rank = at_.size(); rank-- > 0;) awake_.push_back(rank);
    while (!awake_.empty()) {
      const std::size_t rank = awake_.back();
      awake_.pop_back();
      while (step(rank)) {
      }
    }
    std::string text;
    for (std::size_t rank = 0; rank < at_.size(); ++rank)
      if (!finished(rank)) text += fmt::format("{} rank {} {}", text.empty() ? "" : ";", rank, wait_of(rank));
    return text.empty() ? "" : fmt::format("deadlock with {}:{}", rule(), text);
  }

 private:
  /// Where a rank is: before its next action, or in the send after it.
  struct Place {
    std::size_t action = 0;
    bool sending = false;
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
    const Action& a = action(rank);
    const auto target = index_.target(a);
    if (at.sending) {
      if (static_cast<std::int64_t>(link_to(rank, *target, a).size()) > schedule_.send_depth) return false;
      at.sending = false;
    } else {
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
      at.sending = target && target->rank != static_cast<std::int32_t>(rank);
      if (at.sending) {
        link_to(rank, *target, a).push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(at.action)});
        awake_.push_back(static_cast<std::size_t>(target->rank));
      }
    }
    if (!at.sending) ++at.action;
    return true;
  }

  std::string rule() const {
    return schedule_.send_depth == 0 ? "rendezvous sends" : fmt::format("sends of depth {}", schedule_.send_depth);
  }
  /// As what is sent, B is I.
  std::string made(const ActionPlace& place) const {
    Action a = index_.action(place);
    if (a.kind == backward) a.kind = backward_input;
    return print(a);
  }
  std::string wait_of(std::size_t rank) {
    const Action& a = action(rank);
    if (at_[rank].sending) return fmt::format("waits in {} for rank {} to receive", print(a), index_.target(a)->rank);
    const ActionPlace source = *index_.source(a);
    const std::string text = fmt::format("waits in {} for {} of rank {}", print(a), made(source), source.rank);
    const Link& arriving = link_from(source, rank, a);
    return arriving.empty() ? text : fmt::format("{}, which sent {} first", text, made(arriving.front()));
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  std::vector<Place> at_;
  std::vector<std::size_t> awake_;  // ranks for which something has changed since they could not go on
  std::unordered_map<std::uint64_t, Link> undelivered_;  // by sender, receiver and direction
};

}  // namespace

std::string deadlock(const Schedule& schedule, const ScheduleIndex& index) {
  return Messages(schedule, index).deadlock();
}

}  // namespace shardproof::plan
