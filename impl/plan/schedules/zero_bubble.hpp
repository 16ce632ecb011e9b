// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// The handcrafted schedules of Qi et al. 2024, section 3: 1F1B with backward in two parts. Rank r (from 0) of p goes
/// `ahead` (p - 1 - r) microbatches forward first; once more than `ahead` r weight gradients are due, one is done after
/// each pair of F and I; the rest fill the end. In slices each counts as a microbatch, with as many more ahead as make
/// a sequence whole, as in 1F1B (Sun et al. 2024).
Schedule zero_bubble(const ScheduleShape& shape, std::int64_t ahead);

}  // namespace shardproof::plan
