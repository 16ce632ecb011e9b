// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"

namespace shardproof::plan {
namespace {

// Each microbatch goes forward through all stages and back before the next one starts: one rank works at a time, and
// one set of activations is held.
Schedule generate(const ScheduleShape& shape) {
  Schedule schedule;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    for (std::int64_t m = 0; m < shape.microbatches; ++m) {
      actions.push_back({rank, ActionKind::forward, m});
      actions.push_back({rank, ActionKind::backward, m});
    }
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator naive_technique{
    .name = "naive",
    .paper = "Huang et al. 2019, figure 2(b): the naive model parallelism that GPipe is set against",
    .generate = generate,
};

}  // namespace shardproof::plan
