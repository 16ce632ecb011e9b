// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// A rank holds no more activations than ranks follow it, itself included. In slices each counts as a microbatch that
// goes forward one by one, with as many more of them ahead as make a sequence whole (Sun et al. 2024, Seq1F1B).
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {.slices = true}); }

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule{.send_depth = 1};
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    std::vector<Action> forwards, backwards;
    for (std::int64_t m = 0; m < shape.microbatches; ++m) {
      append(forwards, shape, {rank, forward, m});
      append(backwards, shape, {rank, backward, m});
    }
    auto& actions = schedule.ranks.emplace_back();
    const std::size_t ahead =
        std::min(static_cast<std::size_t>(shape.ranks - 1 - rank + shape.slices - 1), forwards.size());
    for (std::size_t k = 0; k < forwards.size() + ahead; ++k) {
      if (k < forwards.size()) actions.push_back(forwards[k]);
      if (k >= ahead) actions.push_back(backwards[k - ahead]);
    }
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator one_f_one_b_technique{
    .name = "one_f_one_b",
    .alias = "1f1b",
    .meaning = "each backward as early as it can be, so that fewer activations wait",
    .paper = "Narayanan et al. 2021, section 2.2.1 (PipeDream-Flush)",
    .refusal = refusal,
    .generate = generate,
};

}  // namespace shardproof::plan
