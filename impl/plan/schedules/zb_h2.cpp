// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"
#include "impl/plan/schedules/zero_bubble.hpp"

namespace shardproof::plan {
namespace {

// About twice the memory of 1F1B; no bubble between the first F and the last W of a rank where F, I and W take the same
// time.
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {.slices = true}); }

Schedule generate(const ScheduleShape& shape) { return zero_bubble(shape, 2); }

}  // namespace

extern const ScheduleGenerator zb_h2_technique{
    .name = "zb_h2",
    .meaning = "as zb_h1, with more forwards ahead: no gap between a rank's first and last action",
    .paper = "Qi et al. 2024, section 3.2",
    .refusal = refusal,
    .generate = generate,
};

}  // namespace shardproof::plan
