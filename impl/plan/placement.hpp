// SPDX-License-Identifier: Apache-2.0
// Which ranks of a pipeline run what: it follows from where a schedule has the forwards.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// Ranks are pp coordinates.
class Placement {
 public:
  /// Of a schedule whose F, I and W of a microbatch and a stage are on one rank (checker.hpp).
  explicit Placement(const Schedule& schedule);

  std::int64_t stages() const { return static_cast<std::int64_t>(ranks_of_stage_.size()); }
  /// Those that hold the stage, ascending: more than one where copies of it (mirrors, replicas) run other microbatches.
  const std::vector<std::int64_t>& ranks_of(std::int64_t stage) const;
  /// The one that runs this microbatch. Throws InternalError where none does.
  std::int64_t rank_of(std::int64_t stage, std::int64_t microbatch) const;
  /// The stages that a rank holds, ascending.
  const std::vector<std::int64_t>& stages_of(std::int64_t rank) const;

 private:
  std::vector<std::vector<std::int64_t>> ranks_of_stage_, stages_of_rank_;
  std::int64_t microbatches_ = 0;
  std::vector<std::int32_t> home_;  // by stage and microbatch; -1: none
};

}  // namespace shardproof::plan
