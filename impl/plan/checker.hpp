// SPDX-License-Identifier: Apache-2.0
// Proves a schedule before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// Every finding, empty for a legal schedule: an action of a stage on another rank than its own; an action that is
/// missing (of many, the first ten and their count), doubled or of a stage or microbatch that does not exist; I before
/// F, W before I, U before W of its microbatch on one rank; where there is none of these, a deadlock with sends of the
/// schedule's depth (each rank's blocked action named). Receives come just before, sends just after their action, and
/// messages of one direction arrive in the order in which they were sent. U may be left out.
std::vector<std::string> findings(const Schedule& schedule, std::int64_t stages, std::int64_t microbatches);

/// The most microbatches of which a rank holds activations at once: after F, until its W (or B).
std::vector<std::int64_t> peak_in_flight(const Schedule& schedule);

}  // namespace shardproof::plan
