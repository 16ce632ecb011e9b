// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/checker.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "impl/plan/schedule_completeness.hpp"
#include "impl/plan/schedule_messages.hpp"
#include "impl/plan/schedule_updates.hpp"
#include "impl/plan/weight_versions.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

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
std::optional<ScheduleFinding> crossed_mirrors(const Schedule& schedule, std::int64_t stages) {
  std::vector<std::vector<std::int64_t>> orders;
  for (const auto& actions : schedule.ranks) orders.push_back(ready_order(actions));
  const std::vector<std::int64_t> copies = copies_of_stages(schedule, stages);
  std::vector<std::vector<std::size_t>> after(copies.size());
  std::vector<std::int64_t> open(copies.size());  // stages before it that are not done
  for (auto& order : orders) {
    std::erase_if(order, [&](std::int64_t stage) { return copies[static_cast<std::size_t>(stage)] < 2; });
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
  ScheduleFinding found;
  constexpr std::size_t shown = 10;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    std::vector<std::int64_t>& order = orders[rank];
    std::erase_if(order, [&](std::int64_t stage) { return open[static_cast<std::size_t>(stage)] == 0; });
    if (order.size() < 2 || ++count > shown) continue;
    if (count == 1) {
      const auto& actions = schedule.ranks[rank];
      const auto finishes = [&](const Action& a) { return is_weight_backward(a) && a.stage == order[0]; };
      found = {static_cast<std::int64_t>(rank),
               std::find_if(actions.rbegin(), actions.rend(), finishes).base() - actions.begin() - 1,
               "sums over copies of stages wait for each other, by the order in which ranks finish them:"};
    }
    const std::size_t named = std::min(order.size(), shown);
    found.text += fmt::format("{} rank {} {}{}", count == 1 ? "" : ";", rank,
                              fmt::join(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                              named < order.size() ? ", ..." : "");
  }
  if (count == 0) return std::nullopt;
  if (count > shown) found.text += fmt::format("; and {} more ranks", count - shown);
  return found;
}

}  // namespace

std::vector<ScheduleFinding> prove(const Schedule& schedule, const ScheduleExtent& extent) {
  if (schedule.ranks.empty()) return {{.text = "there is no rank"}};
  if (extent.stages < 1 || extent.microbatches < 1) return {{.text = "there is no action"}};
  ScheduleFindings findings;
  find_incomplete(schedule, extent, findings);
  if (!findings.empty()) return std::move(findings).list();  // what follows would only say it again
  const ScheduleIndex index(schedule, extent);
  find_wrong_updates(schedule, index, findings);
  if (!findings.empty()) return std::move(findings).list();
  auto found = weight_versions(schedule, index).findings;
  if (auto crossed = crossed_mirrors(schedule, extent.stages)) found.push_back(std::move(*crossed));
  if (found.empty())
    if (auto circle = deadlock(schedule, index)) found.push_back(std::move(*circle));
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
