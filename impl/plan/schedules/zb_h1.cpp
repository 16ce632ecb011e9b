// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"
#include "impl/plan/schedules/zero_bubble.hpp"

namespace shardproof::plan {
namespace {

// The memory of 1F1B; the bubble is a third of 1F1B's where F, I and W take the same time.
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {.slices = true}); }

Schedule generate(const ScheduleShape& shape) { return zero_bubble(shape, 1); }

}  // namespace

extern const ScheduleGenerator zb_h1_technique{
    .name = "zb_h1",
    .meaning = "gradients of inputs first, those of weights fill the gaps",
    .paper = "Qi et al. 2024, section 3.1",
    .refusal = refusal,
    .generate = generate,
};

}  // namespace shardproof::plan
