// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_report.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/schedule_forms.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/placement.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

std::vector<std::int64_t> versions_of(const NamedSchedule& named) {
  return plan::weight_versions(named.schedule, plan::ScheduleIndex(named.schedule, named.extent)).most_kept;
}

/// What the counts of activations and weights are of, "" where a rank holds one stage, a fraction 1 / ranks of the
/// model.
std::string unit_of(const NamedSchedule& named) {
  const plan::Placement placement(named.schedule);
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < named.schedule.ranks.size(); ++rank)
    most = std::max(most, placement.stages_of(static_cast<std::int64_t>(rank)).size());
  if (most < 2) return "";
  return fmt::format("activations and weights are counted in stages, each 1/{} of the model; a rank holds {}\n",
                     named.extent.stages, most);
}

/// What the schedule's paper says, as columns of a table.
class Paper {
 public:
  Paper(const NamedSchedule& named, const plan::ActionCosts& costs) : named_(named), at_{named.shape, costs} {}

  const ScheduleForm* form(std::string_view quantity) const {
    return named_.generator ? schedule_form(named_.generator->name, quantity) : nullptr;
  }
  /// "" where it says nothing.
  std::string value(std::string_view quantity, std::size_t rank = 0) const {
    const ScheduleForm* const said = form(quantity);
    ScheduleCase at = at_;
    at.rank = rank;
    const auto value = said ? said->value(at) : std::nullopt;
    return value ? fmt::format("{:.6g}", *value) : "";
  }
  std::string source(std::string_view quantity) const {
    const ScheduleForm* const said = form(quantity);
    return said ? fmt::format("{}, {}", said->text, said->source) : "";
  }

 private:
  const NamedSchedule& named_;
  const ScheduleCase at_;
};

std::string of_all_ranks(const NamedSchedule& named, const plan::Timeline& line, const Paper& paper) {
  std::vector<std::vector<std::string>> rows = {{"", "here", "paper", "by its formula"}};
  rows.push_back({"makespan", fmt::format("{:.6g}", line.makespan), "", ""});
  for (const std::string_view quantity : schedule_quantities()) {
    if (quantity.find("bubble") == quantity.npos) continue;
    // Rounding must not make a bubble of nothing: a makespan is known to far less than 1e-12 of it.
    const double here = measured(quantity, named.schedule, line, {});
    const std::string said = paper.value(quantity);
    rows.push_back({std::string(meaning_of(quantity)),
                    fmt::format("{:.6g}", std::abs(here) <= 1e-12 * line.makespan ? 0 : here), said,
                    said.empty() ? "" : paper.source(quantity)});
  }
  return table(rows);
}

std::string of_each_rank(const NamedSchedule& named, const plan::Timeline& line, const Paper& paper) {
  const auto activations = plan::peak_in_flight(named.schedule);
  const auto versions = versions_of(named);
  std::vector<std::vector<std::string>> rows = {
      {"rank", "busy", "idle", "peak activations", "paper", "weight copies", "paper"}};
  for (std::size_t rank = 0; rank < line.ranks.size(); ++rank) {
    double busy = 0;
    for (const plan::Span& span : line.ranks[rank]) busy += span.end - span.start;
    rows.push_back({fmt::format("{}", rank), fmt::format("{:.6g}", busy), fmt::format("{:.6g}", line.makespan - busy),
                    fmt::format("{}", activations[rank]), paper.value("activations", rank),
                    fmt::format("{}", versions[rank]), paper.value("weight_versions", rank)});
  }
  for (const std::size_t column : {6u, 4u})  // no column for a paper that says nothing
    if (std::ranges::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) { return row[column].empty(); }))
      for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  std::string text = table(rows);
  if (const std::string unit = unit_of(named); !unit.empty()) text += "\n" + unit;
  for (const auto& [quantity, column] :
       {std::pair{"activations", "activations"}, std::pair{"weight_versions", "weight copies"}})
    if (!paper.source(quantity).empty()) text += fmt::format("\nthe paper's {}: {}\n", column, paper.source(quantity));
  return text;
}

}  // namespace

std::string size_of(const NamedSchedule& named) {
  std::string text = fmt::format("{}, {}, {} microbatch{}", counted(named.schedule.ranks.size(), "rank"),
                                 counted(named.extent.stages, "stage"), named.extent.microbatches,
                                 named.extent.microbatches == 1 ? "" : "es");
  if (named.extent.slices != 0) text += fmt::format(", {}", counted(named.extent.slices, "slice"));
  return text;
}

plan::Timeline timeline_of(const NamedSchedule& named, const plan::ActionCosts& costs) {
  if (!costs.overlapped) return plan::timeline(named.schedule, costs);
  try {
    return plan::timeline(named.schedule, costs);
  } catch (const BadInput&) {  // a proven schedule can always run where each action is its own
    throw BadInput(
        fmt::format("--overlapped does not go with {}: its blocks of F and B wait for each other", named.title));
  }
}

std::string proof_report(const NamedSchedule& named) {
  return fmt::format(
      "proven: {}\nsends ahead of their receivers: {}\npeak activations by rank: {}\nweight copies by rank: {}\n{}",
      size_of(named), named.schedule.send_depth, fmt::join(plan::peak_in_flight(named.schedule), " "),
      fmt::join(versions_of(named), " "), unit_of(named));
}

std::string bubble_report(const NamedSchedule& named, const plan::ActionCosts& costs, const plan::Timeline& line) {
  const Paper paper(named, costs);
  return fmt::format("{}: {}\nat {}\n\n{}\n{}", printable(named.title), size_of(named), text_of(costs),
                     of_all_ranks(named, line, paper), of_each_rank(named, line, paper));
}

}  // namespace shardproof::harness
