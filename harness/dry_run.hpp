// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/case_options.hpp"

namespace shardproof::harness {

/// What each case would need, by closed forms alone, for any number of ranks: parameters, the memory of the rank that
/// holds most and of all, whether that fits, traffic of a step by axis, bubble, FLOPs of a step; or why it is refused.
/// Of several cases the end is a table of them.
std::string dry_run(std::span<const RunCase> cases, std::int64_t machine_bytes);

}  // namespace shardproof::harness
