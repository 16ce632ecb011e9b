// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shardproof::predict {

/// Idle time over the ideal time of p ranks with m microbatches of equal cost and no communication: (p-1)/m for gpipe
/// (Narayanan et al. 2021, section 2.2.1); p-1 for naive, where one rank works at a time. None for a schedule without a
/// form.
std::optional<double> bubble_overhead(std::string_view schedule, std::int64_t p, std::int64_t m);

/// Of the overhead: idle time over all time, (p-1)/(m+p-1) for gpipe (Huang et al. 2019, section 2.3).
double bubble_fraction(double overhead);

/// Of a microbatch on one stage.
struct StageSeconds {
  double forward = 0, backward = 0;
};

/// Makespan of gpipe with m microbatches over stages of unequal cost, without communication:
///   sum f + (m-1) max f + sum b + (m-1) max b.
/// Forward: the first microbatch is through after the sum of all stages. From then on the slowest stage, which is never
/// idle between its first and its last, has m-1 more to do, one every max f; stages behind it are faster and only pass
/// them on. The last stage begins its backward there, when all others have ended their forwards; backward is the same
/// in the other direction.
double gpipe_seconds(std::span<const StageSeconds> stages, std::int64_t m);

}  // namespace shardproof::predict
