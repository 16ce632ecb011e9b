// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardproof::predict {

/// Idle time over the ideal time of p ranks with m microbatches of equal cost and no communication: (p-1)/m for gpipe
/// (Narayanan et al. 2021, section 2.2.1); p-1 for naive, where one rank works at a time. None for a schedule without a
/// form.
std::optional<double> bubble_overhead(std::string_view schedule, std::int64_t p, std::int64_t m);

/// Of the overhead: idle time over all time, (p-1)/(m+p-1) for gpipe (Huang et al. 2019, section 2.3).
double bubble_fraction(double overhead);

}  // namespace shardproof::predict
