// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/bubble.hpp"

#include <algorithm>

namespace shardproof::predict {

std::optional<double> bubble_overhead(std::string_view schedule, std::int64_t p, std::int64_t m) {
  const double others = static_cast<double>(p - 1);
  if (schedule == "gpipe") return others / static_cast<double>(m);
  if (schedule == "naive") return others;
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
