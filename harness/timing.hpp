// SPDX-License-Identifier: Apache-2.0
// What the recorded spans of a training say about its speed, as figures of its record.
#pragma once

#include <cstdint>

#include "harness/training.hpp"

namespace shardproof::harness {

/// Adds step_seconds_*, time_*_share, tokens_per_second_replay_*, replay_*, and where there is a pipeline
/// bubble_{formula,replay,wall}_* and pipeline_{formula,replay,wall}_seconds, its makespan: wall figures of it only
/// where each rank has a processor, the form of the makespan, from pipeline_stageK_{forward,backward}_seconds (medians
/// of the steps' means, on the replay's clock), only of gpipe with one rank a stage. Without a flush steps overlap:
/// bubbles are of bubble_{replay,wall}_steady_steps of them together (SteadyPart), seconds their mean; none where too
/// few were recorded. Also mfu (above 1 where the peak came out too low) and peak_flops_per_second of native steps of
/// at least 1 GFLOP. Nothing if no step was recorded. Replays are over the record's fabric; with more ranks than
/// `processors` of this machine they cost processor time.
void add_timing(const TrainingJob& job, const Trained& trained, std::int64_t processors, Record& record);

}  // namespace shardproof::harness
