// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "harness/case.hpp"

namespace shardproof::harness {

/// Case `index` of a seed: the workload random:SEED:INDEX under a random legal strategy of at most so many ranks. One
/// in eight is on one rank.
Case random_case(std::uint64_t seed, std::int64_t index, Track track, std::int64_t most_ranks = 8);

}  // namespace shardproof::harness
