// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedules/zero_bubble.hpp"

#include <algorithm>

#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {

using enum ActionKind;

Schedule zero_bubble(const ScheduleShape& shape, std::int64_t ahead) {
  Schedule schedule{.send_depth = 1};
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Action> forwards, inputs, weights;
    for (std::int64_t m = 0; m < shape.microbatches; ++m) {
      append(forwards, shape, {rank, forward, m});
      append(inputs, shape, {rank, backward_input, m});
      append(weights, shape, {rank, backward_weight, m});
    }
    auto& actions = schedule.ranks.emplace_back();
    const std::size_t all = forwards.size(), late = static_cast<std::size_t>(ahead * rank);
    const std::size_t first =
        std::min(static_cast<std::size_t>(ahead * (shape.ranks - 1 - rank) + shape.slices - 1), all);
    std::size_t done = 0;  // of weights
    for (std::size_t k = 0; k < all + first; ++k) {
      if (k < all) actions.push_back(forwards[k]);
      if (k < first) continue;
      actions.push_back(inputs[k - first]);
      if (k - first + 1 > done + late || k >= all) actions.push_back(weights[done++]);
    }
    actions.insert(actions.end(), weights.begin() + static_cast<std::ptrdiff_t>(done), weights.end());
  }
  return schedule;
}

}  // namespace shardproof::plan
