// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/stale_feed.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "impl/plan/checker.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::engine {

using plan::ActionKind;

StaleFeed::StaleFeed(const plan::Plan& plan, std::int64_t pp, std::function<workload::Batch(std::int64_t)> batches)
    : plan_(plan), pp_(pp), batches_(std::move(batches)) {
  if (plan.pipeline.placement.stages_of(pp).size() > 1)
    throw NotSupported("a schedule without a flush with several stages on a rank is not executed");
  const auto& schedule = plan.pipeline.schedule;
  const plan::ScheduleIndex index(schedule, plan::extent_of(schedule));
  const auto read = plan::weight_versions(schedule, index).read.at(static_cast<std::size_t>(pp));
  for (std::size_t at = 0; at < read.size(); ++at) {
    const plan::Action& action = actions()[at];
    if (action.kind == ActionKind::update) continue;
    last_reader_[read[at]] = at;
    if (action.kind == ActionKind::forward) read_by_forward_[action.microbatch] = read[at];
  }
}

StaleFeed::Step& StaleFeed::step_of(std::int64_t microbatch) {
  const std::int64_t step = microbatch / plan_.strategy.microbatches;
  while (std::ssize(steps_) <= step) steps_.push_back({.batch = batches_(std::ssize(steps_) + 1)});
  return steps_[static_cast<std::size_t>(step)];
}

std::span<const plan::Action> StaleFeed::next_actions() const {
  const std::span all(actions());
  const auto rest = all.subspan(at_);
  const auto update = std::ranges::find(rest, ActionKind::update, &plan::Action::kind);
  const auto count = static_cast<std::size_t>(update - rest.begin());
  const auto behind = rest.subspan(std::min(count + 1, rest.size()));
  const bool is_last = std::ranges::find(behind, ActionKind::update, &plan::Action::kind) == behind.end();
  return is_last ? rest : rest.first(count + 1);
}

bool StaleFeed::is_read(std::int64_t version) const {
  const auto last = last_reader_.find(version);
  return last != last_reader_.end() && last->second >= at_;
}

}  // namespace shardproof::engine
