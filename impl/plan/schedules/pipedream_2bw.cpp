// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// 1F1B without a flush: every m microbatches update their stage, and two versions of its weights are enough.
std::int64_t per_update(const ScheduleShape& shape) {
  return shape.microbatches_per_update == 0 ? shape.ranks : shape.microbatches_per_update;
}

std::string refusal(const ScheduleShape& shape) {
  if (auto why = unused_shape(shape, {.updates = true}); !why.empty()) return why;
  const std::int64_t m = per_update(shape);
  if (m < shape.ranks) return fmt::format("microbatches per update {}: at least one a rank, {}", m, shape.ranks);
  if (shape.microbatches % m != 0)
    return fmt::format("microbatches {}: a multiple of the {} of an update, as {}{}", shape.microbatches, m,
                       shape.microbatches < m ? "" : fmt::format("{} or ", shape.microbatches / m * m),
                       (shape.microbatches / m + 1) * m);
  return "";
}

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule{.send_depth = 1, .weights = WeightRule::double_buffered};
  const std::int64_t m = shape.microbatches;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    const std::int64_t ahead = std::min(shape.ranks - 1 - rank, m);
    for (std::int64_t k = 0; k < m + ahead; ++k) {
      if (k < m) actions.push_back({rank, forward, k});
      if (k < ahead) continue;
      actions.push_back({rank, backward, k - ahead});
      if ((k - ahead + 1) % per_update(shape) == 0) actions.push_back({rank, update, k - ahead});
    }
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator pipedream_2bw_technique{
    .name = "pipedream_2bw",
    .meaning = "no flush: an update every few microbatches, two versions of the weights (another program)",
    .paper = "Narayanan et al. 2021b (Memory-Efficient Pipeline-Parallel DNN Training), section 3.1",
    .refusal = refusal,
    .generate = generate,
    .stale = workload::StaleProgram::Rule::double_buffered,
};

}  // namespace shardproof::plan
