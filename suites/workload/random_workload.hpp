// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "suites/workload/workload.hpp"

namespace shardproof::workload {

/// A legal workload of hostile shape with a random choice of every option, named "random:SEED:INDEX" (which load()
/// accepts). Some step of it has a label, though not every one. At most 20 million multiplications a step, forward and
/// backward.
Workload random_workload(std::uint64_t seed, std::int64_t index);

}  // namespace shardproof::workload
