// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/checker.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

bool backs_inputs(const Action& a) { return a.kind == backward_input || a.kind == backward; }
bool backs_weights(const Action& a) { return a.kind == backward_weight || a.kind == backward; }

/// B counts as I and W.
std::vector<Action> parts_of(const Action& a) {
  if (a.kind != backward) return {a};
  return {{a.stage, backward_input, a.microbatch}, {a.stage, backward_weight, a.microbatch}};
}

/// What a part of an action must come after, on its own rank.
std::optional<ActionKind> before(ActionKind kind) {
  switch (kind) {
    case backward_input: return forward;
    case backward_weight: return backward_input;
    case update: return backward_weight;
    default: return std::nullopt;
  }
}

using Key = std::tuple<std::int64_t, ActionKind, std::int64_t>;
Key key_of(const Action& a) { return {a.stage, a.kind, a.microbatch}; }

class Completeness {
 public:
  Completeness(const Schedule& schedule, std::int64_t stages, std::int64_t microbatches)
      : stages_(stages), microbatches_(microbatches), ranks_(static_cast<std::int64_t>(schedule.ranks.size())) {
    for (std::int64_t rank = 0; rank < ranks_; ++rank)
      for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) visit(rank, action);
    missing();
  }

  std::vector<std::string> findings() && { return std::move(findings_); }

 private:
  void visit(std::int64_t rank, const Action& action) {
    const auto add = [&](const std::string& text) {
      findings_.push_back(fmt::format("rank {}: {} {}", rank, print(action), text));
    };
    if (action.stage < 0 || action.stage >= stages_)
      return add(fmt::format("is of stage {} of {}", action.stage, stages_));
    if (action.microbatch < 0 || action.microbatch >= microbatches_)
      return add(fmt::format("is of microbatch {} of {}", action.microbatch, microbatches_));
    if (const std::int64_t owner = rank_of_stage(action.stage, ranks_); owner != rank)
      return add(fmt::format("belongs on rank {}", owner));
    for (const Action& part : parts_of(action)) {
      const auto needed = before(part.kind);
      if (needed && !seen_.contains({part.stage, *needed, part.microbatch}))
        add(fmt::format("comes before {}", print({part.stage, *needed, part.microbatch})));
      if (!seen_.insert(key_of(part)).second)
        add(part == action ? "is doubled" : fmt::format("doubles {}", print(part)));
    }
  }

  void missing() {
    constexpr std::uint64_t shown = 10;
    std::uint64_t present = 0;
    for (const auto& [stage, kind, microbatch] : seen_) present += kind != update;
    const std::uint64_t count = 3 * static_cast<std::uint64_t>(stages_ * microbatches_) - present;
    std::uint64_t named = 0;
    // Ends soon: all but `count` are present.
    for (std::int64_t stage = 0; stage < stages_ && named < std::min(count, shown); ++stage)
      for (std::int64_t m = 0; m < microbatches_ && named < std::min(count, shown); ++m)
        for (const ActionKind kind : {forward, backward_input, backward_weight}) {
          if (seen_.contains({stage, kind, m}) || named == shown) continue;
          findings_.push_back(
              fmt::format("rank {}: {} is missing", rank_of_stage(stage, ranks_), print({stage, kind, m})));
          ++named;
        }
    if (count > shown) findings_.push_back(fmt::format("{} more actions are missing", count - shown));
  }

  std::int64_t stages_, microbatches_, ranks_;
  std::set<Key> seen_;
  std::vector<std::string> findings_;
};

/// Runs a complete schedule without time: each rank goes on until it waits for a message or for a receiver.
class Messages {
 public:
  Messages(const Schedule& schedule, std::int64_t stages)
      : schedule_(schedule), stages_(stages), at_(schedule.ranks.size()) {}

  /// "" when every rank reaches its end.
  std::string deadlock() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int64_t rank = 0; rank < ranks(); ++rank)
        while (step(rank)) moved = true;
    }
    std::string text;
    for (std::int64_t rank = 0; rank < ranks(); ++rank)
      if (!finished(rank)) text += fmt::format("{} rank {} {}", text.empty() ? "" : ";", rank, wait_of(rank));
    return text.empty() ? "" : fmt::format("deadlock with {}:{}", rule(), text);
  }

 private:
  /// Where a rank is: before its next action, or in the send after it.
  struct Place {
    std::size_t action = 0;
    bool sending = false;
  };
  /// Messages of one direction from one rank to another arrive in the order in which they were sent.
  using Link = std::tuple<std::int64_t, std::int64_t, bool>;  // from, to, forward

  std::int64_t ranks() const { return static_cast<std::int64_t>(at_.size()); }
  Place& place(std::int64_t rank) { return at_[static_cast<std::size_t>(rank)]; }
  bool finished(std::int64_t rank) {
    return place(rank).action == schedule_.ranks[static_cast<std::size_t>(rank)].size();
  }
  const Action& action(std::int64_t rank) {
    return schedule_.ranks[static_cast<std::size_t>(rank)][place(rank).action];
  }

  /// The action whose message `a` needs, and the one that needs the message of `a`.
  std::optional<Action> source(const Action& a) const {
    if (a.kind == forward && a.stage > 0) return Action{a.stage - 1, forward, a.microbatch};
    if (backs_inputs(a) && a.stage + 1 < stages_) return Action{a.stage + 1, backward_input, a.microbatch};
    return std::nullopt;
  }
  std::optional<Action> target(const Action& a) const {
    if (a.kind == forward && a.stage + 1 < stages_) return Action{a.stage + 1, forward, a.microbatch};
    if (backs_inputs(a) && a.stage > 0) return Action{a.stage - 1, backward_input, a.microbatch};
    return std::nullopt;
  }
  std::int64_t owner(const Action& a) const { return rank_of_stage(a.stage, static_cast<std::int64_t>(at_.size())); }

  bool arrived(std::int64_t rank, const Action& from) {
    if (owner(from) == rank) return done_.contains(key_of(from));
    const auto& queue = undelivered_[{owner(from), rank, from.kind == forward}];
    return !queue.empty() && queue.front() == from;
  }

  bool step(std::int64_t rank) {
    if (finished(rank)) return false;
    Place& at = place(rank);
    const Action& a = action(rank);
    if (!at.sending) {
      if (const auto from = source(a)) {
        if (!arrived(rank, *from)) return false;
        if (owner(*from) != rank) undelivered_[{owner(*from), rank, from->kind == forward}].pop_front();
      }
      for (const Action& part : parts_of(a)) done_.insert(key_of(part));
      const auto to = target(a);
      at.sending = to && owner(*to) != rank;
      if (at.sending) link_of(rank, a).push_back({a.stage, a.kind == forward ? forward : backward_input, a.microbatch});
    } else if (static_cast<std::int64_t>(link_of(rank, a).size()) > schedule_.send_depth) {
      return false;
    } else {
      at.sending = false;
    }
    if (!at.sending) ++at.action;
    return true;
  }

  std::deque<Action>& link_of(std::int64_t rank, const Action& a) {
    return undelivered_[{rank, owner(*target(a)), a.kind == forward}];
  }

  std::string rule() const {
    return schedule_.send_depth == 0 ? "rendezvous sends" : fmt::format("sends of depth {}", schedule_.send_depth);
  }
  std::string wait_of(std::int64_t rank) {
    const Action& a = action(rank);
    if (place(rank).sending) return fmt::format("waits in {} for rank {} to receive", print(a), owner(*target(a)));
    const Action from = *source(a);
    const auto& queue = undelivered_[{owner(from), rank, from.kind == forward}];
    const std::string text = fmt::format("waits in {} for {} of rank {}", print(a), print(from), owner(from));
    return queue.empty() ? text : fmt::format("{}, which sent {} first", text, print(queue.front()));
  }

  const Schedule& schedule_;
  std::int64_t stages_;
  std::vector<Place> at_;
  std::set<Key> done_;
  std::map<Link, std::deque<Action>> undelivered_;
};

}  // namespace

std::vector<std::string> findings(const Schedule& schedule, std::int64_t stages, std::int64_t microbatches) {
  if (schedule.ranks.empty()) return {"there is no rank"};
  auto found = Completeness(schedule, stages, microbatches).findings();
  // Without an action that others wait for, a deadlock would only say so again.
  if (found.empty())
    if (auto text = Messages(schedule, stages).deadlock(); !text.empty()) found.push_back(std::move(text));
  return found;
}

std::vector<std::int64_t> peak_in_flight(const Schedule& schedule) {
  std::vector<std::int64_t> peaks;
  for (const auto& actions : schedule.ranks) {
    std::int64_t held = 0, peak = 0;
    for (const Action& action : actions) {
      held += (action.kind == forward) - backs_weights(action);
      peak = std::max(peak, held);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace shardproof::plan
