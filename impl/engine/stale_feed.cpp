// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/stale_feed.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/core/errors.hpp"

namespace shardproof::engine {

using plan::ActionKind;

StaleFeed::StaleFeed(const plan::Plan& plan, std::int64_t pp, std::function<workload::Batch(std::int64_t)> batches)
    : plan_(plan), pp_(pp), batches_(std::move(batches)) {
  if (plan.pipeline.placement.stages_of(pp).size() != 1)
    throw NotSupported("a schedule without a flush with several stages or none on a rank is not executed");
  const std::int64_t stage = plan.pipeline.placement.stages_of(pp).at(0);
  per_update_ = plan.stale->per_update.at(static_cast<std::size_t>(stage));
  const auto& read = plan.stale->read.at(static_cast<std::size_t>(pp));
  for (std::size_t at = 0; at < read.size(); ++at) {
    const plan::Action& action = actions()[at];
    if (action.kind == ActionKind::update) continue;
    last_reader_[read[at]] = at;
    if (action.kind == ActionKind::forward) read_by_forward_[action.microbatch] = read[at];
  }
}

StaleFeed::Step& StaleFeed::step(std::int64_t number) {
  while (std::ssize(steps_) < number) {
    const std::int64_t next = std::ssize(steps_) + 1;
    steps_.push_back({.number = next, .batch = batches_(next)});
  }
  return steps_.at(static_cast<std::size_t>(number - 1));
}

plan::Range StaleFeed::steps_of_update(std::int64_t microbatch) const {
  const std::int64_t first = microbatch / per_update_ * per_update_;
  return {step_of(first), step_of(first + per_update_ - 1) + 1};
}

std::span<const plan::Action> StaleFeed::next_actions(std::int64_t step) const {
  const auto& by_step = plan_.stale->by_step.at(static_cast<std::size_t>(pp_));
  return std::span(actions()).subspan(at_, by_step.at(static_cast<std::size_t>(step - 1)) - at_);
}

void StaleFeed::done() {
  const plan::Action& action = actions().at(at_++);
  if (action.kind != ActionKind::update) return;
  const plan::Range steps = steps_of_update(action.microbatch);
  for (std::int64_t number = steps.begin; number < steps.end; ++number) step(number).batch = {};
}

bool StaleFeed::is_read(std::int64_t version) const {
  const auto last = last_reader_.find(version);
  return last != last_reader_.end() && last->second >= at_;
}

}  // namespace shardproof::engine
