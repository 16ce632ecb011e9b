// SPDX-License-Identifier: Apache-2.0
#include "harness/dry_run.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/predict/bubble.hpp"
#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "harness/predict/ranks.hpp"
#include "harness/predict/traffic.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

/// Of all ranks.
struct MemoryForms {
  std::int64_t all = 0, rank_of_most = 0;
  predict::RankForm most = {};
};

MemoryForms memory_forms(const TrainingJob& job, const plan::Pipeline& pipeline) {
  MemoryForms forms;
  for (std::int64_t r = 0; r < job.strategy.ranks(); ++r) {
    auto form = predict::rank_form(job.workload, job.strategy, pipeline, static_cast<Rank>(r),
                                   predict::role_bytes(job.track), largest_batch(job.workload));
    forms.all += form.memory.total();
    if (r > 0 && form.memory.total() <= forms.most.memory.total()) continue;
    forms.most = std::move(form);
    forms.rank_of_most = r;
  }
  return forms;
}

void add_memory(const TrainingJob& job, const MemoryForms& forms, Rows& rows) {
  const auto& memory = forms.most.memory;
  const auto bytes = predict::role_bytes(job.track);
  const bool several = job.strategy.ranks() > 1;
  const auto add = [&](const char* name, std::int64_t total, std::int64_t of_one) {
    rows.push_back({name, fmt::format("{} ({} an element)", print_bytes(total), counted(of_one, "byte"))});
  };
  rows.push_back({fmt::format("memory of rank {}{}", forms.rank_of_most, several ? ", which holds most" : ""),
                  fmt::format("{}, at least", print_bytes(memory.total()))});
  add("  parameter", memory.parameter, bytes.parameter);
  add("  gradient", memory.gradient, bytes.gradient);
  add("  optimizer_state", memory.optimizer_state, bytes.state);
  const std::int64_t in_flight = forms.most.microbatches_in_flight;
  rows.push_back({"  saved", fmt::format("{} ({} in flight; {} an element, of masks {})", print_bytes(memory.saved),
                                         in_flight == 1 ? "1 microbatch" : fmt::format("{} microbatches", in_flight),
                                         counted(bytes.activation, "byte"), bytes.mask)});
  if (several) rows.push_back({"memory of all ranks", fmt::format("{}, at least", print_bytes(forms.all))});
}

void add_device_memory(const TrainingJob& job, Rows& rows) {
  if (job.device_memory_bytes == MemoryLedger::unlimited) return;
  const std::string full = ranks_without_room(job);
  rows.push_back({fmt::format("fit in {} each", print_bytes(job.device_memory_bytes)),
                  full.empty()
                      ? fmt::format("all of {}, at least by what has a form", counted(job.strategy.ranks(), "rank"))
                      : fmt::format("of {} these do not: {}", counted(job.strategy.ranks(), "rank"), full)});
}

/// "yes", or why not; the oracle beside it is left out.
std::string fits(const TrainingJob& job, std::int64_t machine_bytes) {
  try {
    require_threads(job.strategy);
    refuse_too_large(job, nullptr, machine_bytes);
    return "yes";
  } catch (const Error& error) {
    return fmt::format("no: {}", error.what());
  }
}

using Axes = std::map<std::string, std::int64_t>;

/// On the wire in a step, all ranks together.
Axes traffic_bytes(const TrainingJob& job, const plan::Pipeline& pipeline) {
  Axes axes;
  for (const auto& [key, traffic] :
       predict::traffic(job.workload, job.strategy, pipeline, job.track, largest_batch(job.workload)))
    axes[key.axis] += traffic.wire_bytes;
  return axes;
}

void add_traffic(const Axes& axes, Rows& rows) {
  if (axes.empty()) return;
  rows.push_back({"traffic of a step, all ranks", ""});
  for (const auto& [axis, bytes] : axes) rows.push_back({"  " + axis, print_bytes(bytes)});
}

std::optional<double> bubble_overhead(const plan::Strategy& strategy) {
  if (strategy.pp == 1) return std::nullopt;
  return predict::bubble_overhead(strategy.schedule, strategy.pp, strategy.microbatches,
                                  schedule_shape(strategy).chunks);
}

void add_flops(const TrainingJob& job, Rows& rows) {
  const auto batch = largest_batch(job.workload);
  const bool published = predict::is_equation_7(job.workload);
  rows.push_back({"model FLOPs of a step", fmt::format("{:.4g} ({})", predict::flops(job.workload, batch).total(),
                                                       published ? "Korthikanti et al. 2022, eq. 7" : "from shapes")});
  rows.push_back({"  with full recomputation",
                  fmt::format("{:.4g} ({})", predict::flops_with_full_recomputation(job.workload, batch),
                              published ? "Narayanan et al. 2021, eq. 3" : "from shapes")});
}

/// The case in full; and its ranks, parameters and memory of the rank that holds most, traffic and bubble.
std::pair<std::string, Row> described(const RunCase& one, std::int64_t machine_bytes) {
  Rows rows = {{"case", print(one.value)}};
  Row summary = {std::to_string(one.value.ranks)};
  if (!one.job) {
    rows.push_back({"refused", one.refusal});
    summary.emplace_back("refused");
    return {table(rows), summary};
  }
  const TrainingJob& job = *one.job;
  const auto parameters = predict::parameter_count(job.workload);
  const plan::Pipeline pipeline = plan::pipeline_of(job.strategy, job.workload.steps);
  const MemoryForms forms = memory_forms(job, pipeline);
  const Axes axes = traffic_bytes(job, pipeline);
  const auto bubble = bubble_overhead(job.strategy);
  rows.push_back(
      {"parameters", fmt::format("{} ({:.1f} billion)", parameters, 1e-9 * static_cast<double>(parameters))});
  add_memory(job, forms, rows);
  add_device_memory(job, rows);
  rows.push_back({"fits here", fits(job, machine_bytes)});
  add_traffic(axes, rows);
  if (bubble)
    rows.push_back({"bubble (formula)", fmt::format("{:.1f} % of the pipeline's time, {:.4g} of its ideal time",
                                                    100 * predict::bubble_fraction(*bubble), *bubble)});
  add_flops(job, rows);

  std::int64_t wire_bytes = 0;
  for (const auto& [axis, bytes] : axes) wire_bytes += bytes;
  summary.push_back(std::to_string(predict::count(job.workload, forms.most.stages).elements));
  summary.push_back(print_bytes(forms.most.memory.total()));
  summary.push_back(print_bytes(wire_bytes));
  summary.push_back(bubble ? fmt::format("{:.1f} %", 100 * predict::bubble_fraction(*bubble)) : "-");
  return {table(rows), summary};
}

}  // namespace

std::string dry_run(std::span<const RunCase> cases, std::int64_t machine_bytes) {
  const auto differ_by_more = [first = cases.front().value](const RunCase& one) {
    const Case& v = one.value;
    return std::tie(v.workload, v.settings, v.track) != std::tie(first.workload, first.settings, first.track);
  };
  const bool strategies = std::ranges::none_of(cases, differ_by_more);
  Rows summary = {{strategies ? "strategy" : "case", "ranks", "parameters of a rank", "peak memory of a rank",
                   "traffic of a step", "bubble"}};
  std::string text;
  for (const RunCase& one : cases) {
    auto [all, row] = described(one, machine_bytes);
    row.insert(row.begin(), strategies ? one.value.strategy : print(one.value));
    summary.push_back(std::move(row));
    text += all + (cases.size() > 1 ? "\n" : "");
  }
  if (cases.size() == 1) return text;
  return text + "by formula: the rank that holds most (memory: at least), and the wire between all ranks\n" +
         table(summary);
}

}  // namespace shardproof::harness
