// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "harness/record.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// Trains the job, judges the first steps (or the part of them that the oracle's time allows) where `check` is on, and
/// fills in the record: verdict, reason, judged, compared, digest, ledgers, forms, figures (replays over the record's
/// fabric, in processor time where there are more ranks than its environment has cores). `on_step` is called after each
/// step of the training that is measured. Throws what train() throws.
Trained run_case(const TrainingJob& job, bool check, const workload::Corpus& corpus, Record& record,
                 const std::function<void(const engine::StepResult&)>& on_step);

}  // namespace shardproof::harness
