// SPDX-License-Identifier: Apache-2.0
// Exports a training run for other programs: safetensors files that numpy alone can read.
//
//   export.json             schema, track, loss scale, steps, digest, workload and its hash
//   initial.safetensors     parameter/NAME
//   step-0001.safetensors   tokens, labels, documents i32 [samples, T]; label_mask u8 (1: the position has a label);
//                           dropout_mask/SITE u8, where dropout is on; loss ([0]: null), norm, clip f64; skipped i64;
//                           gradient/NAME, parameter/NAME, state/NAME
//   yardstick.safetensors   f32/STEP/KIND/NAME f64 [1]: max |oracle(float) - oracle(double)| of that tensor, each
//   trained
//                           on its own; the greatest of 16 draws (of models with over 2^18 parameters fewer, at least
//                           2): from the parameters as they are, then from ones moved by a unit in the last place
//
// Tensors are F64 in their logical shape, whole: `global_offset` 0 in every dimension. Gradients are unscaled, divided
// by the loss scale. In `exact` a double may not hold all bits of a Q23.40, so raw/KIND/NAME i64 has the scaled
// integers. Every file's metadata names schema, track, loss_scale, workload_hash and workload; a step's also `step` and
// the `digest` of its observables alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/training.hpp"

namespace shardproof::harness {

struct Exported {
  std::string digest;
  std::int64_t steps;     ///< that it is over: all
  engine::Skipped ended;  ///< whether the last step was taken
};

/// Trains the job's steps and writes all files into a folder that does not exist yet (or is replaced,
/// export_folder.hpp). The folder appears whole or not at all. Throws what train() and ExportFolder throw, and
/// WriteError.
Exported export_run(const TrainingJob& job, const workload::Corpus& corpus, const std::filesystem::path& folder,
                    bool overwrite, bool yardstick);

}  // namespace shardproof::harness
