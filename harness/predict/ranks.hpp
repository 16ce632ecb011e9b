// SPDX-License-Identifier: Apache-2.0
// Closed forms of what one rank of a strategy's mesh holds and computes. The workload has the strategy's program keys
// (plan::with_program_keys), and the strategy is legal for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "impl/plan/plan.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/memory_ledger.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::predict {

/// What a part of the model keeps from forward to backward.
struct PartBytes {
  std::string part;  ///< "embedding", "blocks.0", ..., "head"
  std::int64_t bytes = 0;
  bool operator==(const PartBytes&) const = default;
};

struct RankForm {
  std::vector<Holding> stages;              ///< ascending
  std::vector<std::int64_t> samples;        ///< of the step, by stage: copies of it on other ranks take the rest
  std::int64_t microbatches_in_flight = 0;  ///< of its stages, at most at once; empty ones count
  Memory memory;
  std::vector<PartBytes> saved;  ///< of the step's first microbatch of each stage, in the order of the model
  Flops flops;                   ///< of the step
};

/// For a step of `samples`, cut into dp x microbatches consecutive parts, the larger first, some of them empty where
/// there are fewer samples. The order of the rank's actions says what is saved at once. `step`, from 1, of a pipeline
/// that covers a run: ranks may take steps in turn. It goes through the whole schedule.
RankForm rank_form(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                   Rank rank, const RoleBytes& bytes, std::int64_t samples, std::int64_t step = 1);
/// Its `flops` alone, which need the step's microbatches and no other: for all steps of a run.
Flops rank_flops(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                 Rank rank, std::int64_t samples, std::int64_t step = 1);

}  // namespace shardproof::predict
