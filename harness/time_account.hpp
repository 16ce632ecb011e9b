// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes on each rank: every instant is counted once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/span_log.hpp"

namespace shardproof::harness {

/// Seconds of one rank's step. An instant in which several things go on belongs to the first of them in this order, so
/// that communication is what computation does not hide.
struct TimeAccount {
  double compute = 0;        ///< inside kernels, without their exchanges
  double copy = 0;           ///< between host and device
  double communication = 0;  ///< exchanges after all whom they concern have come
  double wait = 0;           ///< exchanges before that
  double host = 0;           ///< all the rest
  /// Processor time of the step's thread outside of kernels: what the engine itself costs, whoever else has processors.
  double engine = 0;
  double total() const { return compute + copy + communication + wait + host; }
};

/// How long an exchange waits for its peers: for a collective until the last member comes, for a receive until its
/// message is sent, a send always. `peers`: the spans of all ranks. Nanoseconds for each exchange of each rank.
std::vector<std::vector<std::int64_t>> waits(std::span<const Spans> ranks);

/// [rank][step], of the steps that were recorded.
std::vector<std::vector<TimeAccount>> time_accounts(std::span<const Spans> ranks);

}  // namespace shardproof::harness
