// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "harness/case_options.hpp"

namespace shardproof::harness {

/// What the case would need, by closed forms alone, for any number of ranks: parameters, the memory of the rank that
/// holds most and of all, whether that fits, traffic of a step by axis, bubble, FLOPs of a step; or why it is refused.
std::string dry_run(const RunCase& one, std::int64_t machine_bytes);

}  // namespace shardproof::harness
