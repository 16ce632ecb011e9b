// SPDX-License-Identifier: Apache-2.0
#include "harness/ledgers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/predict/ranks.hpp"
#include "harness/predict/traffic.hpp"

namespace shardproof::harness {

namespace {

std::string saved_name(std::string part) {
  std::ranges::replace(part, '.', '_');
  return fmt::format("memory_saved_{}_bytes", part);
}

std::string peak_name(Category category) { return fmt::format("memory_{}_peak_bytes", name_of(category)); }

/// What a rank's counts begin with.
std::string prefix(std::size_t rank, std::size_t ranks) { return ranks == 1 ? "" : fmt::format("rank{}_", rank); }

/// Traffic as the ledger or the form has it.
template <class Traffic>
void add_traffic(Counts& counts, std::string_view axis, std::string_view kind, std::string_view purpose,
                 const Traffic& traffic) {
  const auto name = fmt::format("traffic_{}_{}_{}", axis, kind, purpose);
  counts.emplace_back(name + "_calls", traffic.calls);
  counts.emplace_back(name + "_payload_bytes", traffic.payload_bytes);
  counts.emplace_back(name + "_wire_bytes", traffic.wire_bytes);
}

/// Of what judging sends, nothing is counted.
constexpr std::string_view unmeasured = "observe";

}  // namespace

void MemoryPeaks::stop(const MemoryLedger& memory) {
  for (std::size_t i = 0; i < category_count; ++i) bytes[i] = std::max(bytes[i], memory.peak(static_cast<Category>(i)));
  total_bytes = std::max(total_bytes, memory.peak_total());
}

RankLedgers ledgers_of(const MemoryPeaks& peak, Device& device, const comm::TrafficLedger& traffic,
                       const engine::Trainer& trainer) {
  RankLedgers ledgers;
  ledgers.peak = peak;
  ledgers.saved = trainer.saved_bytes();
  ledgers.peak_in_flight = trainer.peak_in_flight();
  ledgers.flops_model = device.flops().model();
  ledgers.flops_hardware = device.flops().hardware();
  ledgers.traffic = traffic.counts();
  return ledgers;
}

Counts counted(const std::vector<RankLedgers>& ranks) {
  Counts counts;
  std::map<comm::TrafficKey, comm::Traffic> traffic;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto& rank = ranks[r];
    const auto add = [&](const std::string& name, std::int64_t value) {
      counts.emplace_back(prefix(r, ranks.size()) + name, value);
    };
    for (std::size_t i = 0; i < category_count; ++i) {
      const auto category = static_cast<Category>(i);
      const bool always =
          category == Category::parameter || category == Category::gradient || category == Category::optimizer_state;
      if (rank.peak.bytes[i] > 0 || always) add(peak_name(category), rank.peak.bytes[i]);
    }
    add("memory_total_peak_bytes", rank.peak.total_bytes);
    for (const auto& saved : rank.saved) add(saved_name(saved.part), saved.bytes);
    if (ranks.size() > 1) add("microbatches_in_flight_peak", rank.peak_in_flight);
    add("flops_model", rank.flops_model);
    add("flops_hardware", rank.flops_hardware);
    for (const auto& [key, count] : rank.traffic) {
      auto& sum = traffic[key];
      sum.calls += count.calls, sum.payload_bytes += count.payload_bytes, sum.wire_bytes += count.wire_bytes;
    }
  }
  for (const auto& [key, count] : traffic) {
    if (key.purpose == unmeasured) continue;
    add_traffic(counts, key.axis, name_of(key.kind), key.purpose, count);
  }
  return counts;
}

Counts counted(const std::vector<engine::StepResult>& steps) {
  std::int64_t tokens = 0;
  for (const auto& step : steps) tokens += step.tokens;
  const auto skipped = [&](engine::Skipped why) {
    return std::ranges::count_if(steps, [=](const engine::StepResult& step) { return step.skipped == why; });
  };
  return {{"tokens", tokens},
          {"steps_taken", skipped(engine::Skipped::no)},
          {"steps_skipped_non_finite", skipped(engine::Skipped::non_finite)},
          {"steps_skipped_no_label", skipped(engine::Skipped::no_label)}};
}

Counts predicted(const TrainingJob& job, const plan::Plan& plan, const std::vector<BatchSize>& batches) {
  if (batches.empty()) return {};
  const auto bytes = predict::role_bytes(job.track);
  const auto ranks = plan.mesh.ranks();
  Counts counts;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const auto rank = static_cast<Rank>(r);
    const auto add = [&](const std::string& name, std::int64_t value) {
      counts.emplace_back(prefix(static_cast<std::size_t>(r), static_cast<std::size_t>(ranks)) + name, value);
    };
    // The step of the rank's first microbatch: a later one than the first where ranks take steps in turn.
    const auto first = plan.actions(plan::place_of(plan.mesh, rank).pp).front().microbatch / job.strategy.microbatches;
    const auto form = predict::rank_form(job.workload, job.strategy, plan.pipeline, rank, bytes,
                                         batches.at(static_cast<std::size_t>(first)).samples, first + 1);
    add(peak_name(Category::parameter), form.memory.parameter);
    add(peak_name(Category::gradient), form.memory.gradient);
    add(peak_name(Category::optimizer_state), form.memory.optimizer_state);
    double model = 0, hardware = 0;
    for (std::size_t step = 0; step < batches.size(); ++step) {
      const auto flops = predict::rank_flops(job.workload, job.strategy, plan.pipeline, rank, batches[step].samples,
                                             static_cast<std::int64_t>(step) + 1);
      model += flops.total(), hardware += flops.hardware(job.track);
    }
    for (const auto& part : form.saved) add(saved_name(part.part), part.bytes);
    if (ranks > 1) add("microbatches_in_flight_peak", form.microbatches_in_flight);
    add("flops_model", static_cast<std::int64_t>(model));
    add("flops_hardware", static_cast<std::int64_t>(hardware));
  }
  predict::TrafficTable traffic;
  std::int64_t tokens = 0;
  for (std::size_t k = 0; k < batches.size(); ++k) {
    tokens += batches[k].labels;
    for (const auto& [key, step] : predict::traffic(job.workload, job.strategy, plan.pipeline, job.track,
                                                    batches[k].samples, static_cast<std::int64_t>(k) + 1)) {
      auto& sum = traffic[key];
      sum.calls += step.calls, sum.payload_bytes += step.payload_bytes, sum.wire_bytes += step.wire_bytes;
    }
  }
  for (const auto& [key, count] : traffic) add_traffic(counts, key.axis, key.kind, key.purpose, count);
  counts.emplace_back("tokens", tokens);
  return counts;
}

}  // namespace shardproof::harness
