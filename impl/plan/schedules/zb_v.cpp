// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// Rank r holds stages r and 2 p - 1 - r, so that the model's ends meet on rank 0. With F, I and W of one time there is
// no bubble between a rank's first and last action, and no rank holds more than 2 p activations of a stage, the memory
// of 1F1B: a stage here is half of one there. Fewer microbatches than 2 p: those of a longer run that exist. The paper
// draws it; the lengths of its phases are as in PyTorch (ScheduleZBVZeroBubble). In slices the last stage, here of rank
// 0, would have to go forward with a whole sequence before its first backward, and hold more than 2 p.
std::string refusal(const ScheduleShape& shape) { return unused_shape(shape, {}, 2); }

class Rank {
 public:
  Rank(const ScheduleShape& shape, std::int64_t rank)
      : p_(shape.ranks), exist_(shape.microbatches), m_(std::max(exist_, 2 * p_)), rank_(rank) {}

  std::vector<Action> actions() && {
    const Step f0 = {forward, 0}, i0 = {backward_input, 0}, w0 = {backward_weight, 0};
    const Step f1 = {forward, 1}, i1 = {backward_input, 1}, w1 = {backward_weight, 1};
    turns(2 * (p_ - rank_) - 1, {f0});
    turns(rank_, {f1, f0});
    turns(p_ - rank_, {f1, i1, w1});
    turns(m_ - done(f0), {f0, i0, w0, f1, i1, w1});
    turns(m_ - done(f1), {i0, w0, f1, i1, w1});
    turns(rank_, {i0, i1});
    turns(p_ - rank_, {i0, w0});
    turns(m_ - done(w1), {w1});
    turns(m_ - done(w0), {w0});
    return std::move(actions_);
  }

 private:
  struct Step {
    ActionKind kind;
    std::size_t chunk;
  };
  std::int64_t& done(const Step& s) { return done_[static_cast<std::size_t>(s.kind)][s.chunk]; }

  /// Turns of microbatches that do not exist are only counted: there may be 6 p of them on each of p ranks.
  void turns(std::int64_t times, std::initializer_list<Step> steps) {
    for (; times > 0 && std::ranges::any_of(steps, [&](const Step& s) { return done(s) < exist_; }); --times)
      for (const Step& s : steps) {
        const std::int64_t microbatch = done(s)++;
        if (microbatch < exist_) actions_.push_back({s.chunk == 0 ? rank_ : 2 * p_ - 1 - rank_, s.kind, microbatch});
      }
    for (const Step& s : steps) done(s) += times;
  }

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
    .meaning = "as zb_h2, with two stages a rank in a V: in the memory of 1F1B",
    .paper = "Qi et al. 2024, section 6",
    .refusal = refusal,
    .generate = generate,
    .chunks = 2,
};

}  // namespace shardproof::plan
