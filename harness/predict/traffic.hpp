// SPDX-License-Identifier: Apache-2.0
// Closed forms of what the ranks of a strategy's mesh exchange in one step, to be held against the traffic ledgers of
// all ranks together. The workload has the strategy's program keys, and the strategy is legal for it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "impl/plan/plan.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::predict {

/// As the ledger writes them.
struct TrafficKey {
  std::string axis;     ///< "dp", "tp", "pp", "world"
  std::string kind;     ///< "all_reduce", "send", "receive"
  std::string purpose;  ///< "gradient", "mlp_row_output", ...
  friend auto operator<=>(const TrafficKey&, const TrafficKey&) = default;
};

struct Traffic {
  std::int64_t calls = 0;          ///< of all members; one on an empty tensor counts
  std::int64_t payload_bytes = 0;  ///< of the tensors, at each call
  /// Copied out of other ranks' memory: 2(n-1) times the tensor by the n members of an all-reduce together, 2(n-1)/n by
  /// each; what is received.
  std::int64_t wire_bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

using TrafficTable = std::map<TrafficKey, Traffic>;

/// Of a step over `samples`, without what observation sends. A group of one makes no calls. Rows are samples x sequence
/// of a microbatch; bytes do not depend on how the batch is cut, calls do. In `exact` every all-reduce of an unfinished
/// sum comes with one of its bound (8 bytes), under the same purpose. Where the bound shows that a sum needs two lanes,
/// the ledger has the second apart, as "second_lane": that depends on the numbers and has no form. `step`, from 1, of a
/// pipeline that covers a run: ranks that take steps in turn sum their gradients at some alone.
TrafficTable traffic(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                     Track track, std::int64_t samples, std::int64_t step = 1);

}  // namespace shardproof::predict
