// SPDX-License-Identifier: Apache-2.0
#include "harness/training.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>

#include "harness/ledgers.hpp"
#include "harness/processes.hpp"
#include "harness/signals.hpp"
#include "kernels/core/device.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::harness {

namespace {

/// Rank 0 judges what the others have only helped to gather: they wait here for it, not in a call that has a deadline.
class Intermission {
 public:
  void end(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    ended_ = step;
    changed_.notify_all();
  }
  void wait_for(std::int64_t step) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ >= step; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t ended_ = 0;
};

constexpr auto no_more_steps = std::numeric_limits<std::int64_t>::max();

}  // namespace

Trained train(const TrainingJob& job, const workload::Corpus& corpus, const TrainingWatcher& watcher) {
  const plan::Plan plan = plan::make_plan(job.workload, job.strategy);
  const std::int64_t count = plan.mesh.ranks();
  std::vector<RankLedgers> ranks(static_cast<std::size_t>(count));
  std::vector<BatchSize> batches;
  Trained trained;
  Intermission intermission;
  // A planted bit is a function of this process: ranks are its threads then.
  const bool is_planted = job.tamper.tensor || job.tamper.scalar || job.tamper.activation || job.tamper.contraction;
  comm::MpiJob* const others = is_planted ? nullptr : processes();
  const bool is_recorded = job.record_spans;
  const comm::Deal deal = others == nullptr ? comm::Deal{count, 1} : dealt(count);
  const std::int64_t process = others == nullptr ? 0 : others->process();
  const auto rank = [&](comm::World& world) {
    const bool first = world.rank() == Rank{0};
    const bool leads = static_cast<std::int64_t>(world.rank()) == deal.first(process);  // the ranks of its process
    Device device({.rank = world.rank(), .memory_limit_bytes = job.device_memory_bytes, .poison = job.poison});
    const std::unique_ptr<Queue> queue = world.queue(device);
    const auto batch_of = [&](std::int64_t step) {  // a rank's steps in their order
      workload::Batch batch = workload::batch(job.workload, corpus, step);
      if (first) batches.push_back({batch.size(), batch.label_count});
      return batch;
    };
    engine::Trainer trainer(*queue, world, job.workload, job.track, plan, job.tamper, batch_of);
    const bool is_stale = plan.pipeline.is_stale();  // the trainer then has its batches by itself
    // Ranks stop for a step that is observed, which without a flush is not where they would wait for each other.
    const std::int64_t unrecorded = std::max<std::int64_t>(is_stale ? watcher.observed_steps : 0, 1);
    MemoryPeaks peak;
    for (std::int64_t step = 1; step <= job.workload.steps; ++step) {
      if (first) stop_if_interrupted();
      const auto start = std::chrono::steady_clock::now();
      device.spans().turn(is_recorded && step > unrecorded && step <= unrecorded + most_recorded_steps);
      workload::Batch batch;
      engine::StepResult result;
      {
        const Recorded recorded(device.spans(), StepSpan{{}, step});
        if (!is_stale) batch = batch_of(step);
        batch.step = step;
        result = trainer.step(batch, [first] {
          if (first) stop_if_interrupted();
        });
      }
      device.spans().turn(false);
      peak.stop(device.memory());
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (leads && flight() != nullptr) flight()->end_step(seconds);
      if (first) {
        trained.seconds.push_back(seconds);
        trained.steps.push_back(result);
      }
      if (step <= watcher.observed_steps) {
        const engine::Observation seen = trainer.observe();
        if (first) watcher.observe(is_stale ? workload::batch(job.workload, corpus, step) : batch, seen);
        if (leads) {
          if (others != nullptr) others->wait_for_first(deal.used());
          intermission.end(step);
        } else {
          intermission.wait_for(step);
        }
        MemoryPeaks::start(device.memory());
      }
      if (first && watcher.step && !is_stale) watcher.step(result);
      if (step >= watcher.observed_steps && result.skipped == engine::Skipped::non_finite) break;
    }
    if (is_stale) {  // no rank has known a loss so far
      const auto losses = trainer.losses();
      for (std::size_t k = 0; first && k < losses.size(); ++k) {
        trained.steps[k].loss = losses[k];
        if (watcher.step) watcher.step(trained.steps[k]);
      }
    }
    ranks.at(static_cast<std::size_t>(world.rank())) = ledgers_of(peak, device, world.traffic(), trainer);
    if (is_recorded) trained.spans.at(static_cast<std::size_t>(world.rank())) = device.spans().take();
  };
  comm::ThreadsOptions threads = engine::threads_for(plan, job.threads);
  threads.poll = stop_if_interrupted;
  if (is_recorded) trained.spans.resize(ranks.size());
  trained.send_depth = threads.send_depth;
  const auto guarded = [&](comm::World& world) {
    try {
      rank(world);
    } catch (...) {
      intermission.end(no_more_steps);
      throw;
    }
  };
  try {
    if (others != nullptr) {
      ProcessTraining training(*others);
      if (process == 0) training.announce(job, watcher.observed_steps);
      training.run(deal, threads, guarded);
      trained.span_names = training.gather(deal, ranks, trained.spans);
      if (process > 0) return trained;
    } else {
      comm::run_threads(count, threads, guarded);
    }
  } catch (...) {
    stop_if_interrupted();  // whatever the ranks made of it
    throw;
  }
  trained.ledgers = counted(ranks);
  for (auto& of_steps : counted(trained.steps)) trained.ledgers.push_back(std::move(of_steps));
  trained.forms = predicted(job, plan, batches);
  return trained;
}

}  // namespace shardproof::harness
