// SPDX-License-Identifier: Apache-2.0
// What a run costs, estimated before anything is allocated: memory, and the oracle's time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/predict/memory.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// Samples of the largest batch.
std::int64_t largest_batch(const workload::Workload& workload);
/// Throws BadInput for more ranks than threads carry.
void require_threads(const plan::Strategy& strategy);
/// What training with that batch holds at least, on the rank that holds most. At most as many ranks as threads carry.
predict::Memory memory_needed(const TrainingJob& job);

/// The ranks that hold more than the job's device memory, as "0 to 2, 5"; "" where all fit.
std::string ranks_without_room(const TrainingJob& job);

/// Bytes that a run holds at least.
struct Footprint {
  std::int64_t training = 0;  ///< parameters, gradients, optimizer state and saved tensors, by their forms
  std::int64_t judging = 0;   ///< the oracles beside it, and what they are compared with
};

/// The part of a job that is judged by the oracle.
struct JudgedPart {
  TrainingJob job;
  std::int64_t steps = 0;
  std::string text;  ///< "full", or what it was cut to, for the record
  bool full() const { return text == "full"; }
};

/// In so many steps every rank has one: those of a stage may take steps in turn.
std::int64_t steps_of_a_turn(const std::vector<std::int64_t>& replicas);

/// 3, more where ranks that take steps in turn need them to have one each; at most the workload's.
std::int64_t judged_steps(const TrainingJob& job);
inline constexpr double oracle_seconds_allowed = 20;

/// Estimated from multiply-adds.
double oracle_seconds(const workload::Workload& workload, Track track, std::int64_t samples, std::int64_t steps);

/// The first judged_steps(); where the oracle's estimated time exceeds what is allowed, with batches of
/// max(dp x microbatches, 2) samples; where that still exceeds it, one step of those (with ranks that take steps in
/// turn, one of each).
JudgedPart judged_part(const TrainingJob& job, double seconds_allowed = oracle_seconds_allowed);

Footprint footprint(const TrainingJob& job, const JudgedPart* judged);

/// Throws OutOfMemory, naming what is needed by kind and the ranks that do not fit, where the job exceeds its device
/// memory or this machine's. `without`: how the same runs without oracles.
void refuse_too_large(const TrainingJob& job, const JudgedPart* judged, std::int64_t machine_bytes,
                      std::string_view without = "--no-check runs it unchecked");

}  // namespace shardproof::harness
