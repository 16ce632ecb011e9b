// SPDX-License-Identifier: Apache-2.0
// Which version of its stage's weights every action of a schedule reads.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_findings.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::plan {

struct WeightVersions {
  /// Of each rank's actions; U has the one that it makes.
  std::vector<std::vector<std::int64_t>> read;
  /// The most versions that a rank keeps at once, over its stages: the newest, and those that an action to come reads.
  /// 0 where there are findings.
  std::vector<std::int64_t> most_kept;
  /// A version that is read before it is written, or that the stage does not make.
  std::vector<ScheduleFinding> findings;
};

/// By the schedule's rule; for a complete schedule with the updates of its rule (schedule_updates.hpp). Of
/// double_buffered these keep two versions: before U of microbatches to which k belongs, k reads the newest or the one
/// before.
WeightVersions weight_versions(const Schedule& schedule, const ScheduleIndex& index);

}  // namespace shardproof::plan
