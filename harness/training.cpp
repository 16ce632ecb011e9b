// SPDX-License-Identifier: Apache-2.0
#include "harness/training.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "harness/signals.hpp"
#include "kernels/core/device.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::harness {
namespace {

std::string saved_name(std::string part) {
  std::ranges::replace(part, '.', '_');
  return fmt::format("memory_saved_{}_bytes", part);
}

std::string peak_name(Category category) { return fmt::format("memory_{}_peak_bytes", name_of(category)); }

Counts ledgers(Device& device, const engine::Trainer& trainer, const std::vector<engine::StepResult>& steps) {
  Counts counts;
  for (std::size_t i = 0; i < category_count; ++i) {
    const auto category = static_cast<Category>(i);
    const std::int64_t peak = device.memory().peak(category);
    if (peak > 0 || category == Category::optimizer_state) counts.emplace_back(peak_name(category), peak);
  }
  counts.emplace_back("memory_total_peak_bytes", device.memory().peak_total());
  for (const engine::SavedBytes& saved : trainer.saved_bytes())
    counts.emplace_back(saved_name(saved.part), saved.bytes);
  counts.emplace_back("flops_model", device.flops().model());
  counts.emplace_back("flops_hardware", device.flops().hardware());
  std::int64_t tokens = 0;
  for (const engine::StepResult& step : steps) tokens += step.tokens;
  counts.emplace_back("tokens", tokens);
  const auto skipped = [&](engine::Skipped why) {
    return std::ranges::count(steps, why, &engine::StepResult::skipped);
  };
  counts.emplace_back("steps_taken", skipped(engine::Skipped::no));
  counts.emplace_back("steps_skipped_non_finite", skipped(engine::Skipped::non_finite));
  counts.emplace_back("steps_skipped_no_label", skipped(engine::Skipped::no_label));
  return counts;
}

Counts forms(const TrainingJob& job, std::int64_t first_samples, double flops) {
  const predict::Memory memory =
      predict::memory(job.workload, predict::role_bytes(job.track), first_samples, job.microbatches);
  Counts counts = {
      {peak_name(Category::parameter), memory.parameter},
      {peak_name(Category::gradient), memory.gradient},
      {peak_name(Category::optimizer_state), memory.optimizer_state},
      {saved_name("embedding"), memory.saved_embedding},
  };
  for (std::int64_t layer = 0; layer < job.workload.layers; ++layer)
    counts.emplace_back(saved_name(fmt::format("blocks.{}", layer)), memory.saved_block);
  counts.emplace_back(saved_name("head"), memory.saved_head);
  counts.emplace_back("flops_model", static_cast<std::int64_t>(flops));
  return counts;
}

}  // namespace

Trained train(const TrainingJob& job, const workload::Corpus& corpus, const TrainingWatcher& watcher) {
  Device device({.memory_limit_bytes = job.device_memory_bytes, .poison = job.poison});
  ImmediateQueue queue(device);
  engine::Trainer trainer(queue, job.workload, job.track, {.microbatches = job.microbatches});
  Trained trained;
  double flops = 0;
  std::int64_t first_samples = 0;
  for (std::int64_t step = 1; step <= job.workload.steps; ++step) {
    stop_if_interrupted();
    const auto start = std::chrono::steady_clock::now();
    const workload::Batch batch = workload::batch(job.workload, corpus, step);
    trained.steps.push_back(trainer.step(batch));
    trained.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    flops += predict::flops(job.workload, batch.size()).total();
    if (step == 1) first_samples = batch.size();
    if (step <= watcher.observed_steps) watcher.observe(batch, trainer.observe());
    if (watcher.step) watcher.step(trained.steps.back());
    if (step >= watcher.observed_steps && trained.steps.back().skipped == engine::Skipped::non_finite) break;
  }
  trained.ledgers = ledgers(device, trainer, trained.steps);
  trained.forms = forms(job, first_samples, flops);
  return trained;
}

}  // namespace shardproof::harness
