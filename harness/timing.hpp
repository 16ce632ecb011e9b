// SPDX-License-Identifier: Apache-2.0
// What the recorded spans of a training say about its speed, as figures of its record.
#pragma once

#include <optional>

#include "harness/recorded_replay.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

struct TimingOptions {
  std::optional<Fabric> fabric = {};  ///< of the replay
  std::int64_t processors = 1;        ///< of this machine; with fewer than ranks, replays cost processor time
};

/// Adds step_seconds_*, time_*_share, tokens_per_second_replay_*, replay_*, and bubble_{formula,replay,wall}_* where
/// there is a pipeline: wall figures of it only where each rank has a processor; mfu and peak_flops_per_second of
/// native steps of at least 1 GFLOP. Nothing if no step was recorded.
void add_timing(const TrainingJob& job, const Trained& trained, const TimingOptions& options, Record& record);

}  // namespace shardproof::harness
