// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "impl/plan/schedule.hpp"
#include "impl/plan/timeline.hpp"

namespace shardproof::harness {

/// The timeline as a Chrome trace (JSON), a unit of the costs as one microsecond: a process for each rank, whose lane
/// "action" has an "X" event for each action, named as it is printed; for each message between ranks a flow from the
/// action that makes it ("s") to the one that waits for it ("f"), its args when it is sent and when it arrives.
/// "otherData" has title, costs, overlapped (whether an F and the B of another microbatch after it are one block),
/// makespan and bubble_fraction.
std::string schedule_trace(const plan::Schedule& schedule, const plan::Timeline& timeline,
                           const plan::ActionCosts& costs, const std::string& title);

}  // namespace shardproof::harness
