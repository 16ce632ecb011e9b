// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_comparison.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/schedule_report.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using Row = std::vector<std::string>;

/// Throws BadInput for a schedule that is not proven at the depth of its sends.
Row row_of(const NamedSchedule& named, const plan::ActionCosts& costs) {
  const auto found = plan::prove(named.schedule, named.extent);
  if (!found.empty())
    throw BadInput(fmt::format("not proven with sends {} ahead: {}", named.schedule.send_depth,
                               plan::texts_of({found.front()}).front()));
  const plan::Timeline line = timeline_of(named, costs);
  const auto ranks = std::ssize(named.schedule.ranks);
  const double share = static_cast<double>(ranks) / static_cast<double>(named.extent.stages);
  const auto most = [&](const std::vector<std::int64_t>& by_rank) {
    return fmt::format("{:.4g}", share * static_cast<double>(std::ranges::max(by_rank)));
  };
  const plan::ScheduleIndex index(named.schedule, named.extent);
  return {std::string(named.generator->name),
          fmt::format("{}", ranks),
          fmt::format("{}", named.extent.stages),
          fmt::format("{:.6g}", line.makespan),
          fmt::format("{:.1f} %", 100 * line.bubble_fraction()),
          fmt::format("{:.1f} %", 100 * line.bubble_overhead()),
          most(plan::peak_in_flight(named.schedule)),
          most(plan::weight_versions(named.schedule, index).most_kept)};
}

/// Reasons, each with the schedules that have it.
class Refused {
 public:
  void add(std::string_view name, std::string why) {
    if (const std::string own = fmt::format("{}: ", name); why.starts_with(own)) why.erase(0, own.size());
    const auto at = std::ranges::find(rows_, why, &Reason::why);
    (at == rows_.end() ? rows_.emplace_back(Reason{why, {}}) : *at).names.emplace_back(name);
  }
  std::string reasons() const {
    std::string text;
    for (const Reason& row : rows_) text += (text.empty() ? "" : "\n") + row.why;
    return text;
  }
  std::string text() const {
    std::string text = rows_.empty() ? "" : "\nrefused\n";
    for (const Reason& row : rows_) text += fmt::format("  {}: {}\n", fmt::join(row.names, ", "), row.why);
    return text;
  }

 private:
  struct Reason {
    std::string why;
    std::vector<std::string> names;
  };
  std::vector<Reason> rows_;
};

}  // namespace

std::string schedule_comparison(const ScheduleOptions& options) {
  std::vector<Row> rows = {
      {"schedule", "ranks", "stages", "makespan", "bubble", "overhead", "activations", "weight copies"}};
  std::vector<std::string_view> without_flush;
  Refused refused;
  std::string at;
  for (const auto* generator : plan::schedules()) {
    try {
      const NamedSchedule named = options.load(std::string(generator->name));
      const plan::ActionCosts costs = options.costs(named);
      rows.push_back(row_of(named, costs));
      if (generator->stale != workload::StaleProgram::Rule::none) without_flush.push_back(generator->name);
      at = fmt::format("{} microbatch{} at {}", named.extent.microbatches, named.extent.microbatches == 1 ? "" : "es",
                       text_of(costs));
    } catch (const BadInput& error) {
      refused.add(generator->name, error.what());
    } catch (const NotSupported& error) {
      refused.add(generator->name, error.what());
    }
  }
  if (rows.size() == 1) throw BadInput(refused.reasons());
  std::string text = fmt::format(
      "{}\n\n{}\nbubble: idle time of all ranks, of all their time; overhead: the same over their busy time\n"
      "activations, of microbatches, and weight copies: the most on a rank, in its share of the model, 1/ranks\n",
      at, table(rows));
  if (!without_flush.empty())
    text += fmt::format("{}: no flush; what is idle is the start and the end of a run of so few microbatches\n",
                        fmt::join(without_flush, ", "));
  return text + refused.text();
}

}  // namespace shardproof::harness
