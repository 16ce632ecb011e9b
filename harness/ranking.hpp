// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "harness/record.hpp"

namespace shardproof::harness {

/// The cases of each workload and track by their speed, fastest first (unchecked ones in their order), each with the
/// interval of its quartiles (over all records of a case: the least and the greatest), its efficiency against one rank
/// where that was measured, bubble and memory; those whose interval meets the fastest's are marked as not to be told
/// from it. Then what failed, and what was refused with the reason.
std::string ranking(std::span<const Record> records);

}  // namespace shardproof::harness
