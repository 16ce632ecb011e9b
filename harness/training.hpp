// SPDX-License-Identifier: Apache-2.0
// Trains one workload under a strategy, and counts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/record.hpp"
#include "impl/comm/world.hpp"
#include "impl/engine/trainer.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/memory_ledger.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

/// Of a training, enough for quartiles.
inline constexpr std::int64_t most_recorded_steps = 20;

struct TrainingJob {
  workload::Workload workload;  ///< with the strategy's program keys
  Track track = Track::native;
  plan::Strategy strategy = {};
  std::int64_t device_memory_bytes = MemoryLedger::unlimited;  ///< of each rank
  bool poison = false;
  /// Of the steps after the first, without a flush after the observed ones too, at most most_recorded_steps.
  bool record_spans = false;
  /// Replays cost processor time although each rank has a processor: as others do that are compared with this one.
  bool processor_time = false;
  comm::ThreadsOptions threads = {};
  engine::Tamper tamper = {};
};

/// Called on rank 0.
struct TrainingWatcher {
  std::int64_t observed_steps = 0;  ///< the first ones
  /// After each observed step; not timed.
  std::function<void(const workload::Batch&, const engine::Observation&)> observe;
  /// After each step.
  std::function<void(const engine::StepResult&)> step;
};

struct Trained {
  std::vector<engine::StepResult> steps;
  std::vector<double> seconds;  ///< of each step on rank 0, with making its batch
  Counts ledgers, forms;
  std::vector<Spans> spans = {};  ///< of each rank, on rank 0's clock; empty unless recorded
  std::shared_ptr<const std::set<std::string>> span_names = {};  ///< that spans of other processes point into
  std::int64_t send_depth = 0;
};

/// Trains all steps of the workload, or up to the first step after the observed ones that is skipped as non-finite.
/// Throws Interrupted between steps and out of waits, NotSupported for a strategy that the table refuses, OutOfMemory,
/// DeviceError, CommError.
Trained train(const TrainingJob& job, const workload::Corpus& corpus, const TrainingWatcher& watcher);

}  // namespace shardproof::harness
