// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// Each microbatch goes forward through all stages and back before the next one starts: one rank works at a time, and
// one set of activations is held.
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {.slices = true}); }

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    for (std::int64_t m = 0; m < shape.microbatches; ++m)
      for (const ActionKind kind : {forward, backward}) append(actions, shape, {rank, kind, m});
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator naive_technique{
    .name = "naive",
    .meaning = "one microbatch at a time",
    .paper = "Huang et al. 2019, figure 2(b): the naive model parallelism that GPipe is set against",
    .refusal = refusal,
    .generate = generate,
};

}  // namespace shardproof::plan
