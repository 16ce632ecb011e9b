// SPDX-License-Identifier: Apache-2.0
#include "harness/dry_run.hpp"

#include <map>
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

using Rows = std::vector<std::vector<std::string>>;

void add_memory(const TrainingJob& job, Rows& rows) {
  std::int64_t all = 0, rank_of_most = 0;
  predict::RankForm most;
  const plan::Pipeline pipeline = plan::pipeline_of(job.strategy, job.workload.steps);
  for (std::int64_t r = 0; r < job.strategy.ranks(); ++r) {
    auto form = predict::rank_form(job.workload, job.strategy, pipeline, static_cast<Rank>(r),
                                   predict::role_bytes(job.track), largest_batch(job.workload));
    all += form.memory.total();
    if (r > 0 && form.memory.total() <= most.memory.total()) continue;
    most = std::move(form);
    rank_of_most = r;
  }
  const auto& memory = most.memory;
  rows.push_back(
      {fmt::format("memory of rank {}{}", rank_of_most, job.strategy.ranks() > 1 ? ", which holds most" : ""),
       fmt::format("{}, at least", print_bytes(memory.total()))});
  rows.push_back({"  parameter", print_bytes(memory.parameter)});
  rows.push_back({"  gradient", print_bytes(memory.gradient)});
  rows.push_back({"  optimizer_state", print_bytes(memory.optimizer_state)});
  rows.push_back({"  saved", fmt::format("{} ({} in flight)", print_bytes(memory.saved),
                                         most.microbatches_in_flight == 1
                                             ? "1 microbatch"
                                             : fmt::format("{} microbatches", most.microbatches_in_flight))});
  if (job.strategy.ranks() > 1) rows.push_back({"memory of all ranks", fmt::format("{}, at least", print_bytes(all))});
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

void add_traffic(const TrainingJob& job, Rows& rows) {
  std::map<std::string, std::int64_t> axes;
  for (const auto& [key, traffic] :
       predict::traffic(job.workload, job.strategy, plan::pipeline_of(job.strategy, job.workload.steps).placement, job.track,
                        largest_batch(job.workload)))
    axes[key.axis] += traffic.wire_bytes;
  if (axes.empty()) return;
  rows.push_back({"traffic of a step, all ranks", ""});
  for (const auto& [axis, bytes] : axes) rows.push_back({"  " + axis, print_bytes(bytes)});
}

}  // namespace

std::string dry_run(const RunCase& one, std::int64_t machine_bytes) {
  Rows rows = {{"case", print(one.value)}};
  if (!one.job) {
    rows.push_back({"refused", one.refusal});
    return table(rows);
  }
  const TrainingJob& job = *one.job;
  const auto& w = job.workload;
  const auto& strategy = job.strategy;
  const auto parameters = predict::parameter_count(w);
  rows.push_back(
      {"parameters", fmt::format("{} ({:.1f} billion)", parameters, 1e-9 * static_cast<double>(parameters))});
  add_memory(job, rows);
  add_device_memory(job, rows);
  rows.push_back({"fits here", fits(job, machine_bytes)});
  add_traffic(job, rows);
  if (const auto bubble = predict::bubble_overhead(strategy.schedule, strategy.pp, strategy.microbatches,
                                                    schedule_shape(strategy).chunks);
      bubble && strategy.pp > 1)
    rows.push_back({"bubble (formula)", fmt::format("{:.1f} % of the pipeline's time, {:.4g} of its ideal time",
                                                    100 * predict::bubble_fraction(*bubble), *bubble)});
  const auto batch = largest_batch(w);
  rows.push_back({"model FLOPs of a step",
                  fmt::format("{:.4g} (Korthikanti et al. 2022, eq. 7)", predict::flops(w, batch).total())});
  rows.push_back({"  with full recomputation", fmt::format("{:.4g} (Narayanan et al. 2021, eq. 3)",
                                                           predict::flops_with_full_recomputation(w, batch))});
  return table(rows);
}

}  // namespace shardproof::harness
