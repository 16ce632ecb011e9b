// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "impl/plan/schedule.hpp"
#include "impl/plan/timeline.hpp"

namespace shardproof::harness {

/// A drawing that stands alone: a row per rank, a box per action as long as it takes (of no time: a line), coloured by
/// kind, lighter for the later of a rank's stages, and lettered with its microbatch or stage:microbatch where all of
/// its kind have room for it; what is grey is idle. Lines between rows are messages, from the end of what makes one to
/// the start of what waits for it; an F and a B that are one block have a frame. `costs`: of the timeline.
std::string schedule_svg(const plan::Schedule& schedule, const plan::Timeline& timeline, const plan::ActionCosts& costs,
                         const std::string& title);

}  // namespace shardproof::harness
