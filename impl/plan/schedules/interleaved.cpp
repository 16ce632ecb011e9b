// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// Rank r holds stages r, p + r, 2 p + r, ...: chunks of the model. Forwards go through a group of microbatches of one
// chunk, then of the next; backwards likewise from the last chunk on. Groups are of p microbatches; the last one takes
// the remainder too, and all ranks go as far ahead as it needs. The paper asks for a multiple of p. Of whole sequences:
// in slices the forwards ahead and the depth of sends would be others, which no paper here states.
std::string refusal(const ScheduleShape& shape) {
  if (shape.chunks < 2) return "chunks 1: a rank holds at least 2 stages, chunks 2; with one it is one_f_one_b";
  return unused_shape(shape, {.chunks = true});
}

std::int64_t last_group(const ScheduleShape& shape) {
  return std::min(shape.microbatches, shape.ranks + shape.microbatches % shape.ranks);
}

/// The k-th of all (chunk, microbatch) pairs in the order of forwards.
struct Turn {
  std::int64_t chunk, microbatch;
};
Turn turn(const ScheduleShape& shape, std::int64_t k) {
  const std::int64_t groups = std::max<std::int64_t>(shape.microbatches / shape.ranks, 1);
  const std::int64_t group = std::min(k / (shape.ranks * shape.chunks), groups - 1);
  const std::int64_t size = group == groups - 1 ? last_group(shape) : shape.ranks;
  const std::int64_t within = k - group * shape.ranks * shape.chunks;
  return {within / size, group * shape.ranks + within % size};
}

Schedule generate(const ScheduleShape& shape) {
  // Where a group comes before the last one, chunks are sent ahead of their turn by half of what that is longer. Found
  // by trial, and the least there is for 2 to 8 ranks; a proof that it is enough is the checker's, of each schedule.
  const std::int64_t longer = shape.microbatches < 2 * shape.ranks ? 0 : shape.microbatches % shape.ranks;
  Schedule schedule{.send_depth = 1 + (longer + 1) / 2};
  const std::int64_t p = shape.ranks, all = shape.microbatches * shape.chunks;
  for (std::int64_t rank = 0; rank < p; ++rank) {
    auto& actions = schedule.ranks.emplace_back();
    const std::int64_t ahead = std::min(2 * (p - 1 - rank) + (shape.chunks - 1) * last_group(shape), all);
    for (std::int64_t k = 0; k < all + ahead; ++k) {
      if (k < all) {
        const Turn t = turn(shape, k);
        actions.push_back({t.chunk * p + rank, forward, t.microbatch});
      }
      if (k >= ahead) {
        const Turn t = turn(shape, k - ahead);
        actions.push_back({(shape.chunks - 1 - t.chunk) * p + rank, backward, t.microbatch});
      }
    }
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator interleaved_technique{
    .name = "interleaved",
    .meaning = "as one_f_one_b, with several stages a rank: less idle time, more messages",
    .paper = "Narayanan et al. 2021, section 2.2.2",
    .refusal = refusal,
    .generate = generate,
    .chunks = 2,
};

}  // namespace shardproof::plan
