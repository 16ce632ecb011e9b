// SPDX-License-Identifier: Apache-2.0
// Closed forms of what one rank of a strategy's mesh holds and computes. The workload has the strategy's program keys
// (plan::with_program_keys), and the strategy is legal for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
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
  Holding holding;
  std::int64_t samples = 0;                 ///< of the step, over its microbatches
  std::int64_t largest_microbatch = 0;      ///< samples; it is the first one
  std::int64_t microbatches_in_flight = 0;  ///< at most: all under gpipe, 1 under naive; empty ones count
  Memory memory;
  std::vector<PartBytes> saved;  ///< of the largest microbatch, in the order of the model
  Flops flops;                   ///< of the step
};

/// For a step of `samples`, cut into dp x microbatches consecutive parts, the larger first, some of them empty where
/// there are fewer samples. Throws NotSupported for a schedule without a form.
RankForm rank_form(const workload::Workload& workload, const plan::Strategy& strategy, Rank rank,
                   const RoleBytes& bytes, std::int64_t samples);

}  // namespace shardproof::predict
