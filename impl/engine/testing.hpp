// SPDX-License-Identifier: Apache-2.0
// For tests: a training run of a strategy, every rank on its thread.
#pragma once

#include <functional>
#include <string>

#include "impl/engine/trainer.hpp"

namespace shardproof::engine::testing {

struct RankRun {
  Trainer& trainer;
  Device& device;
  comm::World& world;
  bool first() const { return static_cast<int>(world.rank()) == 0; }
};

struct RunOptions {
  bool poison = true;
  std::int64_t memory_limit_bytes = MemoryLedger::unlimited;
  comm::ThreadsOptions threads = {};
  Tamper tamper = {};
};

/// Calls `f` on every rank of the strategy.
inline void on_ranks(const workload::Workload& workload, Track track, const std::string& strategy,
                     const std::function<void(RankRun&)>& f, const RunOptions& options = {}) {
  const auto plan = plan::make_plan(workload, plan::parse_strategy(strategy));
  const workload::Corpus corpus(workload);
  const auto batch_of = [&](std::int64_t step) { return workload::batch(workload, corpus, step); };
  comm::run_threads(plan.mesh.ranks(), threads_for(plan, options.threads), [&](comm::World& world) {
    Device device({.rank = world.rank(), .memory_limit_bytes = options.memory_limit_bytes, .poison = options.poison});
    ImmediateQueue queue(device);
    Trainer trainer(queue, world, workload, track, plan, options.tamper, batch_of);
    RankRun run{trainer, device, world};
    f(run);
  });
}

}  // namespace shardproof::engine::testing
