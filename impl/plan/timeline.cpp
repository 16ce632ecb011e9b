// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace shardproof::plan {
namespace {

using enum ActionKind;

double cost_of(ActionKind kind, const ActionCosts& costs) {
  switch (kind) {
    case forward: return costs.forward;
    case backward_input: return costs.backward_input;
    case backward_weight: return costs.backward_weight;
    case backward: return costs.backward_input + costs.backward_weight;
    case update: break;
  }
  return 0;
}

}  // namespace

double Timeline::bubble_overhead() const {
  return busy > 0 ? (static_cast<double>(ranks.size()) * makespan - busy) / busy : 0;
}

double Timeline::bubble_fraction() const {
  const double all = static_cast<double>(ranks.size()) * makespan;
  return busy > 0 ? (all - busy) / all : 0;
}

Timeline timeline(const Schedule& schedule, const ActionCosts& costs) {
  std::vector<Operation> operations;
  // Where the output of F and the input gradient of I or B come from.
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, std::size_t> makers;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const Action& a : schedule.ranks[rank]) {
      if (a.kind != backward_weight && a.kind != update)
        makers[{a.stage, a.kind == forward, a.microbatch}] = operations.size();
      operations.push_back({static_cast<std::int64_t>(rank), 0, cost_of(a.kind, costs), {}});
    }
  std::size_t next = 0;
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions) {
      Operation& operation = operations[next++];
      if (a.kind == backward_weight || a.kind == update) continue;
      const bool is_forward = a.kind == forward;
      const auto maker = makers.find({a.stage + (is_forward ? -1 : 1), is_forward, a.microbatch});
      if (maker != makers.end()) operation.dependencies.push_back(maker->second);
    }

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
  const Timeline line = timeline(schedule);
  bool one_stage_each = true;
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions) one_stage_each = one_stage_each && a.stage == actions.front().stage;
  const auto label = [&](const Action& a) {
    return one_stage_each ? fmt::format("{}{}", letter_of(a.kind), a.microbatch) : print(a);
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
