// SPDX-License-Identifier: Apache-2.0
// The machines that the processes of a run share.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace shardproof::harness {

/// This process's: which kernel it is (its processes have one monotonic clock), and which processors this process may
/// use.
std::string describe_machine();

/// Processors that processes with these descriptions have together.
std::int64_t processors_of(std::span<const std::string> descriptions);
bool share_a_clock(std::span<const std::string> descriptions);

}  // namespace shardproof::harness
