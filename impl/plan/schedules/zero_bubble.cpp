// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedules/zero_bubble.hpp"

#include <algorithm>

namespace shardproof::plan {

using enum ActionKind;

Schedule zero_bubble(const ScheduleShape& shape, std::int64_t ahead) {
  Schedule schedule{.send_depth = 1};
  const std::int64_t m = shape.microbatches;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    const std::int64_t first = std::min(ahead * (shape.ranks - 1 - rank), m);
    std::int64_t inputs = 0, weights = 0;
    for (std::int64_t k = 0; k < first; ++k) actions.push_back({rank, forward, k});
    for (std::int64_t k = first; k < m + first; ++k) {
      if (k < m) actions.push_back({rank, forward, k});
      actions.push_back({rank, backward_input, inputs++});
      if (inputs - weights > ahead * rank || k >= m) actions.push_back({rank, backward_weight, weights++});
    }
    while (weights < m) actions.push_back({rank, backward_weight, weights++});
  }
  return schedule;
}

}  // namespace shardproof::plan
