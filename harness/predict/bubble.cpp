// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/bubble.hpp"

#include <algorithm>

namespace shardproof::predict {

std::optional<double> bubble_overhead(std::string_view schedule, std::int64_t p, std::int64_t m, std::int64_t v) {
  const auto others = static_cast<double>(p - 1), work = static_cast<double>(m * v);
  if (schedule == "naive") return others;
  if (schedule == "gpipe" || schedule == "one_f_one_b") return others / work;
  if (schedule == "interleaved" && m % p == 0) return others / work;
  if (schedule == "zb_h1" && m >= p) return others / (3 * work);
  if (schedule == "zb_h2" && m >= 2 * p - 1) return others / (3 * work);
  if (schedule == "zb_v" && m >= 2 * p) return others / (3 * work);
  const std::int64_t pairs = p / 2;
  if (schedule == "dualpipe") return static_cast<double>(pairs - 1) / (3 * work);
  return std::nullopt;
}

double bubble_fraction(double overhead) { return overhead / (1 + overhead); }

double gpipe_seconds(std::span<const StageSeconds> stages, std::int64_t m) {
  StageSeconds sum, most;
  for (const auto& stage : stages) {
    sum.forward += stage.forward, sum.backward += stage.backward;
    most.forward = std::max(most.forward, stage.forward), most.backward = std::max(most.backward, stage.backward);
  }
  return sum.forward + sum.backward + static_cast<double>(m - 1) * (most.forward + most.backward);
}

}  // namespace shardproof::predict
