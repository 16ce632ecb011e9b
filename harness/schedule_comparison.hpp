// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/schedule_options.hpp"

namespace shardproof::harness {

/// A table of every generator's schedule at the options' shape and costs: makespan, bubble, and the most activations
/// and weights of a rank, in units of a rank's share of the model; then why the others cannot serve. Throws BadInput
/// with each reason where none can.
std::string schedule_comparison(const ScheduleOptions& options);

}  // namespace shardproof::harness
