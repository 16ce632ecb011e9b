// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// Rank r holds stages r and 2 p - 1 - r, so that the model's ends meet on rank 0. With F, I and W of one time there is
// no bubble between a rank's first and last action, and no rank holds more than 2 p activations of a stage, the memory
// of 1F1B: a stage here is half of one there. Fewer microbatches than 2 p: those of a longer run that exist.
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {}, 2); }

class Rank {
 public:
  Rank(const ScheduleShape& shape, std::int64_t rank)
      : p_(shape.ranks), exist_(shape.microbatches), m_(std::max(exist_, 2 * p_)), rank_(rank) {}

  std::vector<Action> actions() && {
    repeat(2 * (p_ - rank_) - 1, [&] { next(forward, 0); });
    repeat(rank_, [&] { next(forward, 1), next(forward, 0); });
    repeat(p_ - rank_, [&] { next(forward, 1), both(1); });
    while (done(forward, 1) < m_) {
      if (done(forward, 0) < m_) next(forward, 0);
      both(0), next(forward, 1), both(1);
    }
    repeat(rank_, [&] { next(backward_input, 0), next(backward_input, 1); });
    repeat(p_ - rank_, [&] { both(0); });
    for (const std::size_t chunk : {1, 0})
      while (done(backward_weight, chunk) < m_) next(backward_weight, chunk);
    return std::move(actions_);
  }

 private:
  std::int64_t& done(ActionKind kind, std::size_t chunk) { return done_[static_cast<std::size_t>(kind)][chunk]; }
  void next(ActionKind kind, std::size_t chunk) {
    const std::int64_t microbatch = done(kind, chunk)++;
    if (microbatch < exist_) actions_.push_back({chunk == 0 ? rank_ : 2 * p_ - 1 - rank_, kind, microbatch});
  }
  void both(std::size_t chunk) { next(backward_input, chunk), next(backward_weight, chunk); }

  const std::int64_t p_, exist_, m_, rank_;
  std::int64_t done_[3][2] = {};
  std::vector<Action> actions_;
};

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule{.send_depth = 1};
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(Rank(shape, rank).actions());
  return schedule;
}

}  // namespace

extern const ScheduleGenerator zb_v_technique{
    .name = "zb_v",
    .paper = "Qi et al. 2024, section 6",
    .refusal = refusal,
    .generate = generate,
    .chunks = 2,
    .runs = true,
};

}  // namespace shardproof::plan
