// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// Bidirectional: rank r holds stages r and p - 1 - r, so that each stage is on two ranks (mirrors). Of the microbatches
// one half enters at rank 0 and flows upwards, the other at rank p - 1. A forward of one direction stands beside a
// backward of the other, which real devices overlap; here it comes just before it. The lengths of its eight phases are
// those of the authors' program (github.com/deepseek-ai/DualPipe), as the report has none.
std::string refusal(const ScheduleShape& shape) {
  const std::int64_t ranks = shape.ranks + shape.ranks % 2;
  const std::int64_t microbatches = std::max(2 * ranks, shape.microbatches + shape.microbatches % 2);
  if (ranks != shape.ranks)
    return fmt::format("ranks {}: it needs an even number, as {}, and at least two microbatches a rank, as {}",
                       shape.ranks, ranks, microbatches);
  if (microbatches != shape.microbatches)
    return fmt::format("microbatches {}: it needs an even number of at least two a rank, as {}", shape.microbatches,
                       microbatches);
  return unused_shape(shape, {});
}

class Rank {
 public:
  Rank(const ScheduleShape& shape, std::int64_t rank)
      : p_(shape.ranks), half_(shape.microbatches / 2), rank_(rank), upper_(rank >= p_ / 2) {}

  /// Ranks of both halves do the same with directions exchanged: of `place`, the ranks from the nearer end.
  std::vector<Action> actions() && {
    const std::int64_t place = std::min(rank_, p_ - 1 - rank_), inner = p_ / 2 - 1 - place;
    repeat(2 * inner, [&] { next(forward, 0); });
    repeat(place + 1, [&] { next(forward, 0), next(forward, 1); });
    repeat(inner, [&] { input(1), weight(), next(forward, 1); });
    repeat(half_ - p_ + place + 1, [&] { next(forward, 0), whole(1), next(forward, 1), whole(0); });
    repeat(inner, [&] { whole(1), next(forward, 1), whole(0); });
    // Of the second half of these, weights wait: others need the gradients of inputs, and nothing fills the end so
    // well.
    for (std::int64_t k = 0; k < 2 * (place + 1); ++k) {
      const std::size_t way = k % 2 == 0 ? 1 : 0;
      k < place + 1 ? whole(way) : input(way);
    }
    repeat(inner, [&] { weight(), input(0); });
    repeat(place + 1, [&] { weight(); });
    return std::move(actions_);
  }

 private:
  /// `way`: 0 is the direction in which the nearer end of the pipeline is the first stage.
  void next(ActionKind kind, std::size_t way) {
    const bool up = (way == 0) != upper_;
    std::int64_t& done = done_[kind == forward ? 0 : 1][way];
    actions_.push_back({up ? rank_ : p_ - 1 - rank_, kind, (up ? 0 : half_) + done++});
  }
  void whole(std::size_t way) { next(backward, way); }
  void input(std::size_t way) {
    next(backward_input, way);
    waiting_.push_back(actions_.back());
  }
  /// Of the oldest I whose W has not been done.
  void weight() {
    actions_.push_back(waiting_.front());
    actions_.back().kind = backward_weight;
    waiting_.pop_front();
  }

  const std::int64_t p_, half_, rank_;
  const bool upper_;
  std::int64_t done_[2][2] = {};
  std::deque<Action> waiting_;
  std::vector<Action> actions_;
};

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule{.send_depth = 1};
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(Rank(shape, rank).actions());
  return schedule;
}

}  // namespace

extern const ScheduleGenerator dualpipe_technique{
    .name = "dualpipe",
    .meaning = "microbatches from both ends, a forward beside a backward; two copies of the weights",
    .paper = "DeepSeek-AI 2024, section 3.2.1",
    .refusal = refusal,
    .generate = generate,
};

}  // namespace shardproof::plan
