// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// All forwards, then all backwards, so that every rank holds the activations of all microbatches. The backwards go from
// the first microbatch to the last, as in Narayanan et al. 2021 (figure 3) and in PyTorch's files; the GPipe paper
// draws them from the last to the first. Makespan, memory and messages are the same. In slices: Li et al. 2021
// (TeraPipe).
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {.slices = true}); }

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    for (const ActionKind kind : {forward, backward})
      for (std::int64_t m = 0; m < shape.microbatches; ++m) append(actions, shape, {rank, kind, m});
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator gpipe_technique{
    .name = "gpipe",
    .meaning = "all forwards, then all backwards",
    .paper = "Huang et al. 2019, section 2.3",
    .refusal = refusal,
    .generate = generate,
};

}  // namespace shardproof::plan
