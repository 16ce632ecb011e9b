// SPDX-License-Identifier: Apache-2.0
// Trains a workload on one device with the project's kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/observable.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::engine {

struct TrainerOptions {
  std::int64_t microbatches = 1;  ///< parts that a batch is accumulated over; may exceed its samples
};

enum class Skipped : std::int64_t { no = 0, non_finite = 1, no_label = 2 };

struct StepResult {
  std::int64_t step = 0, tokens = 0;  ///< tokens: valid labels
  std::optional<double> loss;         ///< none without labels, or when skipped as non-finite
  double norm = 0, clip_factor = 1, learning_rate = 0;
  Skipped skipped = Skipped::no;
};

/// Bytes that one part of the model keeps from forward to backward, measured by the ledger on the first microbatch of
/// the first step.
struct SavedBytes {
  std::string part;  ///< "embedding", "blocks.0", ..., "head"
  std::int64_t bytes = 0;
};

class Trainer {
 public:
  /// Allocates and initialises parameters, gradients and state. Throws BadInput, OutOfMemory.
  Trainer(Queue& queue, const workload::Workload& workload, Track track, TrainerOptions options = {});
  ~Trainer();

  /// One step on the batch; blocks until its loss is known.
  StepResult step(const workload::Batch& batch);

  /// Everything observable of the last step, in the order of the digest (ARITHMETIC.md, section 12).
  std::vector<Observable> observe();

  /// Parameters only, as they are now (step: the last one, 0 before the first).
  std::vector<Observable> parameters();

  const std::vector<SavedBytes>& saved_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardproof::engine
