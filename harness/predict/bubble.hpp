// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shardproof::predict {

/// Idle time over the ideal time of p ranks with m microbatches of equal cost on v stages each, without communication,
/// from the first action to the last of all ranks:
///   naive         p-1, for one rank works at a time
///   gpipe, 1f1b   (p-1)/m (Narayanan et al. 2021, section 2.2.1)
///   interleaved   (p-1)/(m v), m a multiple of p (ibid., section 2.2.2)
/// and where F, I and W take one time each
///   zb_h1         (p-1)/(3m), from (p-1)(F+I-W) (Qi et al. 2024, table 2), m >= p
///   zb_h2         (p-1)/(3m), m >= 2p-1: nothing is idle between a rank's first action and its last (ibid.); what is
///                 left is the first F's way through the ranks, for a step ends on all of them together
///   zb_v          (p-1)/(3m v), likewise (ibid., section 6), m >= 2p
///   dualpipe      (p/2-1)/(3m) where F and B of a pair come one after the other; as one block, by
///                 (p/2-1)(F&B + B - 3W) (DeepSeek-AI 2024, table 2), it is twice that
/// None elsewhere.
std::optional<double> bubble_overhead(std::string_view schedule, std::int64_t p, std::int64_t m, std::int64_t v);

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
