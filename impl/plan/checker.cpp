// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/checker.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "impl/plan/schedule_messages.hpp"
#include "impl/plan/weight_versions.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

/// B counts as I and W.
std::span<const ActionKind> parts_of(ActionKind kind) {
  static constexpr std::array all = {forward, backward_input, backward_weight, update};
  if (kind == backward) return std::span(all).subspan(1, 2);
  return std::span(all).subspan(kind == update ? 3 : static_cast<std::size_t>(kind), 1);
}

Action with(Action action, ActionKind kind) {
  action.kind = kind;
  return action;
}

std::size_t actions_of(const Schedule& schedule) {
  std::size_t count = 0;
  for (const auto& actions : schedule.ranks) count += actions.size();
  return count;
}

/// Which rank has which part of a unit, and where its F is. Of extents far beyond the actions, which cannot be
/// complete, only those there.
class Seen {
 public:
  Seen(const ScheduleExtent& extent, std::size_t actions) : extent_(extent) {
    const auto units =
        static_cast<unsigned __int128>(extent.stages) * static_cast<unsigned __int128>(extent.microbatches) * slices();
    is_dense_ = units <= actions;
    if (!is_dense_) return;
    dense_.resize(static_cast<std::size_t>(3 * units), -1);
    dense_homes_.resize(static_cast<std::size_t>(units), -1);
  }

  /// Before anything is noted: the first F of a unit says on which rank all of it belongs.
  void set_home(const Action& a, std::int64_t rank) {
    std::int64_t& home = is_dense_ ? dense_homes_[at(with(a, forward)) / 3]
                                   : sparse_homes_.try_emplace(key(with(a, forward)), -1).first->second;
    if (home < 0) home = rank;
  }
  std::int64_t home(const Action& a) const {
    if (is_dense_) return dense_homes_[at(with(a, forward)) / 3];
    const auto found = sparse_homes_.find(key(with(a, forward)));
    return found == sparse_homes_.end() ? -1 : found->second;
  }

  std::int64_t slices() const { return extent_.slices == 0 ? 1 : extent_.slices; }

  /// The rank that has it already; -1 and noted where none has.
  std::int64_t note(const Action& part, std::int64_t rank) {
    std::int64_t& there = is_dense_ ? dense_[at(part)] : sparse_.try_emplace(key(part), -1).first->second;
    if (there >= 0) return there;
    there = rank;
    ++count_;
    return -1;
  }
  std::int64_t rank_of(const Action& part) const {
    if (is_dense_) return dense_[at(part)];
    const auto found = sparse_.find(key(part));
    return found == sparse_.end() ? -1 : found->second;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::size_t at(const Action& a) const {
    const auto unit = (a.stage * extent_.microbatches + a.microbatch) * slices() + std::max<std::int64_t>(a.slice, 0);
    return static_cast<std::size_t>(3 * unit + static_cast<std::int64_t>(a.kind));
  }
  using Key = std::array<std::int64_t, 4>;
  static Key key(const Action& a) { return {a.stage, a.microbatch, a.slice, static_cast<std::int64_t>(a.kind)}; }

  ScheduleExtent extent_;
  bool is_dense_ = false;
  std::vector<std::int64_t> dense_, dense_homes_;
  std::map<Key, std::int64_t> sparse_, sparse_homes_;
  std::uint64_t count_ = 0;
};

class Completeness {
 public:
  Completeness(const Schedule& schedule, const ScheduleExtent& extent)
      : extent_(extent), seen_(extent, actions_of(schedule)) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (const Action& action : schedule.ranks[rank])
        if (action.kind == forward && exists(action)) seen_.set_home(action, static_cast<std::int64_t>(rank));
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      updates_.clear();
      for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at)
        visit(static_cast<std::int64_t>(rank), static_cast<std::int64_t>(at), schedule.ranks[rank][at]);
    }
    missing();
  }

  std::vector<ScheduleFinding> findings() && { return std::move(findings_); }

 private:
  bool exists(const Action& a) const {
    return a.stage >= 0 && a.stage < extent_.stages && a.microbatch >= 0 && a.microbatch < extent_.microbatches &&
           (extent_.slices == 0 ? a.slice == Action::whole : a.slice >= 0 && a.slice < extent_.slices);
  }

  void visit(std::int64_t rank, std::int64_t at, const Action& action) {
    const auto add = [&](const std::string& text) {
      findings_.push_back({rank, at, fmt::format("{} {}", print(action), text)});
    };
    if (action.stage < 0 || action.stage >= extent_.stages)
      return add(fmt::format("is of stage {} of {}", action.stage, extent_.stages));
    if (action.microbatch < 0 || action.microbatch >= extent_.microbatches)
      return add(fmt::format("is of microbatch {} of {}", action.microbatch, extent_.microbatches));
    homes_.try_emplace(action.stage, rank);
    if (action.kind == update) return visit_update(rank, action, add);
    if (action.slice == Action::whole && extent_.slices > 0)
      return add(fmt::format("is of a whole sequence, where others are cut in {} slices", extent_.slices));
    if (action.slice >= std::max<std::int64_t>(extent_.slices, 0) && action.slice != Action::whole)
      return add(fmt::format("is of slice {} of {}", action.slice, extent_.slices));
    const std::int64_t home = seen_.home(action);
    const bool misplaced = home >= 0 && home != rank && action.kind != forward;
    if (misplaced) add(fmt::format("belongs on rank {}, where {} is", home, print(with(action, forward))));
    for (const ActionKind kind : parts_of(action.kind)) {
      const Action part = with(action, kind);
      if (kind != forward && !misplaced) {
        const Action before = with(action, kind == backward_input ? forward : backward_input);
        need(rank, before, add);
      }
      if (Action other = part; !misplaced && later_slice(other)) need(rank, other, add);
      if (seen_.note(part, rank) >= 0) add(kind == action.kind ? "is doubled" : fmt::format("doubles {}", print(part)));
    }
  }

  void visit_update(std::int64_t rank, const Action& action, const auto& add) {
    for (std::int64_t slice = 0; slice < seen_.slices(); ++slice)
      need(rank, {action.stage, backward_weight, action.microbatch, extent_.slices == 0 ? Action::whole : slice}, add);
    if (!updates_.insert({action.stage, action.microbatch}).second) add("is doubled");
  }

  void need(std::int64_t rank, const Action& before, const auto& add) const {
    const std::int64_t there = seen_.rank_of(before);
    if (there < 0)
      add(fmt::format("comes before {}", print(before)));
    else if (there != rank)
      add(fmt::format("belongs on rank {}, where {} is", there, print(before)));
  }

  /// The slice that F or I of this one comes after; false where there is none.
  bool later_slice(Action& part) const {
    if (part.slice == Action::whole || part.kind == backward_weight) return false;
    part.slice += part.kind == forward ? -1 : 1;
    return part.slice >= 0 && part.slice < extent_.slices;
  }

  void missing() {
    constexpr std::uint64_t shown = 10;
    const auto units = static_cast<unsigned __int128>(extent_.stages) *
                       static_cast<unsigned __int128>(extent_.microbatches) *
                       static_cast<unsigned __int128>(seen_.slices());
    const unsigned __int128 count = 3 * units - seen_.count();
    const auto named = count < shown ? static_cast<std::uint64_t>(count) : shown;
    std::uint64_t found = 0;
    // Ends soon: all but `count` are there.
    for (std::int64_t stage = 0; stage < extent_.stages && found < named; ++stage)
      for (std::int64_t m = 0; m < extent_.microbatches && found < named; ++m)
        for (std::int64_t k = 0; k < seen_.slices() && found < named; ++k)
          for (const ActionKind kind : {forward, backward_input, backward_weight}) {
            const Action action{stage, kind, m, extent_.slices == 0 ? Action::whole : k};
            if (found == named || seen_.rank_of(action) >= 0) continue;
            const auto home = homes_.find(stage);  // or that of its other parts
            std::int64_t rank = home == homes_.end() ? ScheduleFinding::nowhere : home->second;
            for (const ActionKind other : {forward, backward_input, backward_weight})
              if (const auto there = seen_.rank_of(with(action, other)); there >= 0) rank = there;
            findings_.push_back({rank, ScheduleFinding::nowhere, fmt::format("{} is missing", print(action))});
            ++found;
          }
    if (count > shown) findings_.push_back({.text = fmt::format("{} more actions are missing", count - shown)});
  }

  const ScheduleExtent extent_;
  Seen seen_;
  std::set<std::pair<std::int64_t, std::int64_t>> updates_;  // of the rank: stage, microbatch
  std::unordered_map<std::int64_t, std::int64_t> homes_;     // the first rank of a stage
  std::vector<ScheduleFinding> findings_;
};

/// The stages of a rank in the order in which their gradients are final.
std::vector<std::int64_t> ready_order(const std::vector<Action>& actions) {
  std::vector<std::int64_t> order;
  std::unordered_set<std::int64_t> seen;
  for (auto a = actions.rbegin(); a != actions.rend(); ++a)
    if (is_weight_backward(*a) && seen.insert(a->stage).second) order.push_back(a->stage);
  std::ranges::reverse(order);
  return order;
}

/// Ranks sum the gradients of stages that they share in the order in which they finish them. Those wait for each other
/// where "finished before, on some rank" leads round in a circle.
std::vector<ScheduleFinding> crossed_mirrors(const Schedule& schedule, std::int64_t stages) {
  std::vector<std::vector<std::int64_t>> orders;
  std::vector<std::int64_t> holders(static_cast<std::size_t>(stages));
  for (const auto& actions : schedule.ranks)
    for (const std::int64_t stage : orders.emplace_back(ready_order(actions)))
      ++holders[static_cast<std::size_t>(stage)];
  std::vector<std::vector<std::size_t>> after(holders.size());
  std::vector<std::int64_t> open(holders.size());  // stages before it that are not done
  for (auto& order : orders) {
    std::erase_if(order, [&](std::int64_t stage) { return holders[static_cast<std::size_t>(stage)] < 2; });
    for (std::size_t k = 1; k < order.size(); ++k) {
      after[static_cast<std::size_t>(order[k - 1])].push_back(static_cast<std::size_t>(order[k]));
      ++open[static_cast<std::size_t>(order[k])];
    }
  }
  std::vector<std::size_t> ready;
  for (std::size_t stage = 0; stage < open.size(); ++stage)
    if (open[stage] == 0) ready.push_back(stage);
  while (!ready.empty()) {
    const std::size_t stage = ready.back();
    ready.pop_back();
    for (const std::size_t next : after[stage])
      if (--open[next] == 0) ready.push_back(next);
  }
  std::string waiting;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    std::erase_if(orders[rank], [&](std::int64_t stage) { return open[static_cast<std::size_t>(stage)] == 0; });
    if (orders[rank].size() > 1)
      waiting += fmt::format("{} rank {} {}", waiting.empty() ? "" : ";", rank, fmt::join(orders[rank], ", "));
  }
  if (waiting.empty()) return {};
  return {
      {.text = "sums over copies of stages wait for each other, by the order in which ranks finish them:" + waiting}};
}

}  // namespace

std::vector<ScheduleFinding> prove(const Schedule& schedule, const ScheduleExtent& extent) {
  if (schedule.ranks.empty()) return {{.text = "there is no rank"}};
  if (extent.units() == 0) return {{.text = "there is no action"}};
  auto found = Completeness(schedule, extent).findings();
  if (!found.empty()) return found;  // what follows would only say it again
  const ScheduleIndex index(schedule, extent);
  found = weight_versions(schedule, index).findings;
  std::ranges::move(crossed_mirrors(schedule, extent.stages), std::back_inserter(found));
  if (found.empty())
    if (auto text = deadlock(schedule, index); !text.empty()) found.push_back({.text = std::move(text)});
  return found;
}

std::vector<std::string> texts_of(const std::vector<ScheduleFinding>& findings) {
  std::vector<std::string> texts;
  for (const ScheduleFinding& finding : findings)
    texts.push_back(finding.rank < 0 ? finding.text : fmt::format("rank {}: {}", finding.rank, finding.text));
  return texts;
}

std::vector<std::string> findings(const Schedule& schedule, std::int64_t stages, std::int64_t microbatches) {
  return texts_of(prove(schedule, {.stages = stages, .microbatches = microbatches}));
}

std::vector<double> peak_activations(const Schedule& schedule, double after_input_backward) {
  std::vector<double> peaks;
  for (const auto& actions : schedule.ranks) {
    double held = 0, peak = 0;
    for (const Action& action : actions) {
      if (action.kind == forward) held += 1;
      if (is_input_backward(action)) held -= 1 - after_input_backward;
      if (is_weight_backward(action)) held -= after_input_backward;
      peak = std::max(peak, held);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::vector<std::int64_t> peak_in_flight(const Schedule& schedule) {
  std::vector<std::int64_t> peaks;
  for (const double peak : peak_activations(schedule, 1)) peaks.push_back(static_cast<std::int64_t>(peak));
  return peaks;
}

}  // namespace shardproof::plan
