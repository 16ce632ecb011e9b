// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/timeline.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

double cost_of(const Action& action, const ActionCosts& costs, double slices) {
  const double factor = costs.stages.empty() ? 1 : costs.stages.at(static_cast<std::size_t>(action.stage));
  const auto part = [&](double cost) { return factor * cost / slices; };
  switch (action.kind) {
    case forward: return part(costs.forward);
    case backward_input: return part(costs.backward_input);
    case backward_weight: return part(costs.backward_weight);
    case backward: return part(costs.backward_input) + part(costs.backward_weight);
    case update: break;
  }
  return 0;
}

/// The k-th update of a stage waits for what comes before the k-th on all of its ranks: an operation of no cost and of
/// no rank, after those of the schedule. `first`: operation of each rank.
void meet_in_updates(const Schedule& schedule, const std::vector<std::size_t>& first, double message,
                     std::vector<Operation>& operations) {
  using Meetings = std::vector<std::vector<std::size_t>>;  // of each update its operations, a rank's each
  std::map<std::int64_t, Meetings> stages;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::unordered_map<std::int64_t, std::size_t> updates;
    for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
      const Action& a = schedule.ranks[rank][at];
      if (a.kind != update) continue;
      Meetings& meetings = stages[a.stage];
      const std::size_t k = updates[a.stage]++;
      if (k == meetings.size()) meetings.emplace_back();
      meetings[k].push_back(first[rank] + at);
    }
  }
  std::int64_t lane = 0;
  for (const auto& [stage, meetings] : stages)
    for (const auto& members : meetings) {
      if (members.size() < 2) continue;
      Operation meeting{.rank = -1, .lane = lane++, .dependencies = {}};
      for (const std::size_t member : members) {
        meeting.dependencies.push_back({member - 1, message});  // before U comes W
        operations[member].dependencies.push_back({operations.size()});
      }
      operations.push_back(std::move(meeting));
    }
}

}  // namespace

bool begins_block(std::span<const Action> actions, std::size_t at) {
  return at + 1 < actions.size() && actions[at].kind == forward && actions[at + 1].kind == backward &&
         actions[at].microbatch != actions[at + 1].microbatch;
}

double Timeline::bubble_overhead() const {
  return busy > 0 ? (static_cast<double>(ranks.size()) * makespan - busy) / busy : 0;
}

double Timeline::bubble_fraction() const {
  const double all = static_cast<double>(ranks.size()) * makespan;
  return busy > 0 ? (all - busy) / all : 0;
}

double Timeline::longest_span() const {
  double longest = 0;
  for (const auto& spans : ranks)
    if (!spans.empty()) longest = std::max(longest, spans.back().end - spans.front().start);
  return longest;
}

double Timeline::bubble_of_span() const {
  const double all = static_cast<double>(ranks.size()) * longest_span();
  return busy > 0 ? (all - busy) / all : 0;
}

Timeline timeline(const Schedule& schedule, const ActionCosts& costs) {
  const ScheduleExtent extent = extent_of(schedule);
  const ScheduleIndex index(schedule, extent);
  const double slices = static_cast<double>(extent.parts());
  std::vector<std::size_t> first;  // operation of each rank
  std::size_t count = 0;
  for (const auto& actions : schedule.ranks) first.push_back(std::exchange(count, count + actions.size()));
  std::vector<Operation> operations;
  operations.reserve(count);
  const auto overlaps_next = [&](std::size_t rank, std::size_t at) {
    return costs.overlapped && begins_block(schedule.ranks[rank], at);
  };
  const auto depend = [&](Operation& operation, const Action& a) {
    const auto source = index.source(a);
    if (!source || !*source) return;
    const auto rank = static_cast<std::size_t>(source->rank), at = static_cast<std::size_t>(source->at);
    operation.dependencies.push_back(
        {first[rank] + at + (overlaps_next(rank, at) ? 1 : 0), source->rank == operation.rank ? 0 : costs.message});
  };
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
      const Action& a = schedule.ranks[rank][at];
      Operation& operation = operations.emplace_back();
      operation.rank = static_cast<std::int64_t>(rank);
      operation.cost = cost_of(a, costs, slices);
      depend(operation, a);
      if (overlaps_next(rank, at)) depend(operation, schedule.ranks[rank][at + 1]);
    }

  meet_in_updates(schedule, first, costs.message, operations);

  const auto spans = replay(operations);
  Timeline line;
  auto span = spans.begin();
  for (const auto& actions : schedule.ranks) {
    const auto end = span + static_cast<std::ptrdiff_t>(actions.size());
    line.ranks.emplace_back(span, end);
    span = end;
  }
  for (std::size_t k = 0; k < spans.size(); ++k) {
    line.makespan = std::max(line.makespan, spans[k].end);
    line.busy += operations[k].cost;
  }
  return line;
}

std::string picture(const Schedule& schedule) {
  const auto slices = static_cast<double>(extent_of(schedule).parts());
  const Timeline line = timeline(schedule, {slices, slices, slices});
  bool one_stage_each = true;
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions) one_stage_each = one_stage_each && a.stage == actions.front().stage;
  const auto label = [&](const Action& a) {
    const std::string text = print(a);
    return one_stage_each ? text.substr(text.find(letter_of(a.kind))) : text;
  };
  std::size_t width = 1;
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions) width = std::max(width, label(a).size() + 1);

  const auto units = static_cast<std::size_t>(line.makespan);
  std::string text;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::string row(units * width, ' ');
    for (std::size_t unit = 0; unit < units; ++unit) row[unit * width] = '.';
    for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
      const auto [start, end] = line.ranks[rank][k];
      const auto begin = static_cast<std::size_t>(start) * width, size = static_cast<std::size_t>(end - start) * width;
      if (size > 0) row.replace(begin, size, fmt::format("{:<{}}", label(schedule.ranks[rank][k]), size));
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("rank {:<{}}  {}\n", rank, std::to_string(schedule.ranks.size() - 1).size(), row);
  }
  return text;
}

}  // namespace shardproof::plan
