// SPDX-License-Identifier: Apache-2.0
// One rank's part of training a workload under a strategy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "impl/comm/world.hpp"
#include "impl/engine/observation.hpp"
#include "impl/engine/stage.hpp"
#include "impl/engine/tamper.hpp"
#include "impl/plan/plan.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::engine {

struct StepResult : Scalars {
  std::int64_t tokens = 0;  ///< valid labels of the global batch
  double learning_rate = 0;
};

/// These options for a world that runs the plan: sends are never of less depth than its schedule was proven with.
comm::ThreadsOptions threads_for(const plan::Plan& plan, comm::ThreadsOptions options);

class Trainer {
 public:
  /// Global batches by step, from 1.
  using Batches = std::function<workload::Batch(std::int64_t step)>;
  /// Allocates and initialises what this rank holds of parameters, gradients and state. The queue's device is that of
  /// the world's rank; the plan's mesh has the world's size (InternalError). All ranks must make the same calls.
  /// `ahead`: where a schedule without a flush has the batches from that its first stages run before their step ends;
  /// others need none. Throws BadInput, OutOfMemory, CommError.
  Trainer(Queue& queue, comm::World& world, const workload::Workload& workload, Track track, const plan::Plan& plan,
          Tamper tamper = {}, Batches ahead = {});
  ~Trainer();

  /// One step on the global batch; blocks until its loss is known. `after_action` is called after each action of the
  /// schedule; what it throws ends the training. Without a flush: what the step's losses and updates need of this rank
  /// (plan/stale_steps.hpp), on batches from `ahead`; of `batch` its number alone is read. Ranks do not wait for each
  /// other, so that its loss is known to observe() and losses() alone. Throws NonFinite where an update would have
  /// to be skipped.
  StepResult step(const workload::Batch& batch, const std::function<void()>& after_action = {});
  /// After the last step of a schedule without a flush: the loss of each, none where it has no label. All ranks must
  /// call it.
  std::vector<std::optional<double>> losses();

  /// Everything observable of the last step (ARITHMETIC.md, section 12): on rank 0, empty on others.
  Observation observe();
  /// Parameters only, as they are now (step: the last one, 0 before the first).
  Observation parameters();

  const std::vector<SavedBytes>& saved_bytes() const;
  std::int64_t peak_in_flight() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardproof::engine
