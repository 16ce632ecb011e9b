// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/placement.hpp"

#include <algorithm>
#include <string>

#include "impl/plan/schedule_index.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {

Placement::Placement(const Schedule& schedule) {
  const ScheduleExtent extent = extent_of(schedule);
  microbatches_ = extent.microbatches;
  ranks_of_stage_.resize(static_cast<std::size_t>(extent.stages));
  stages_of_rank_.resize(schedule.ranks.size());
  home_.assign(static_cast<std::size_t>(extent.stages * extent.microbatches), -1);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    auto& stages = stages_of_rank_[rank];
    for (const Action& action : schedule.ranks[rank]) {
      if (action.kind != ActionKind::forward) continue;
      home_[static_cast<std::size_t>(action.stage * microbatches_ + action.microbatch)] =
          static_cast<std::int32_t>(rank);
      auto& ranks = ranks_of_stage_[static_cast<std::size_t>(action.stage)];
      if (!ranks.empty() && ranks.back() == static_cast<std::int64_t>(rank)) continue;
      ranks.push_back(static_cast<std::int64_t>(rank));
      stages.push_back(action.stage);
    }
    std::ranges::sort(stages);
  }
}

const std::vector<std::int64_t>& Placement::ranks_of(std::int64_t stage) const {
  return ranks_of_stage_.at(static_cast<std::size_t>(stage));
}

std::int64_t Placement::rank_of(std::int64_t stage, std::int64_t microbatch) const {
  const std::int64_t rank = home_.at(static_cast<std::size_t>(stage * microbatches_ + microbatch));
  if (rank < 0)
    throw InternalError("schedule: no rank runs microbatch " + std::to_string(microbatch) + " on stage " +
                        std::to_string(stage));
  return rank;
}

const std::vector<std::int64_t>& Placement::stages_of(std::int64_t rank) const {
  return stages_of_rank_.at(static_cast<std::size_t>(rank));
}

}  // namespace shardproof::plan
