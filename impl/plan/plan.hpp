// SPDX-License-Identifier: Apache-2.0
// Everything that is decided before a run.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "impl/plan/layout.hpp"
#include "impl/plan/mesh.hpp"
#include "impl/plan/placement.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/plan/stale_steps.hpp"
#include "impl/plan/strategy.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::plan {

/// A schedule, and where it has what.
struct Pipeline {
  explicit Pipeline(Schedule of) : schedule(std::move(of)), placement(schedule) {}
  Schedule schedule;
  Placement placement;
  /// Whether stages update by themselves, inside of the schedule.
  bool is_stale() const { return schedule.weights != WeightRule::flushed; }
  /// Steps in a row that an update of the stage is of.
  std::int64_t steps_per_update(std::int64_t stage) const;
};
/// The strategy's, for a run of so many steps. Throws NotSupported with the generator's reason, BadInput for a schedule
/// that the checker does not prove.
Pipeline pipeline_of(const Strategy& strategy, std::int64_t steps = 1);

struct Plan {
  Strategy strategy;
  Mesh mesh;
  Layout layout;
  Pipeline pipeline;
  std::optional<StaleOrder> stale = {};  ///< of a pipeline that is stale; once, for all its ranks

  std::int64_t stages() const { return pipeline.placement.stages(); }
  const std::vector<Action>& actions(std::int64_t pp) const {
    return pipeline.schedule.ranks.at(static_cast<std::size_t>(pp));
  }
  /// The pp coordinates that hold a copy of the parameter: those of its stages in their order, each once. The first one
  /// counts.
  std::vector<std::int64_t> holders(const ParameterLayout& parameter) const;
  /// Whether the step, from 1, ends with an update of it, and shows it: each does, but where the ranks of a stage take
  /// steps in turn.
  bool is_updated(const ParameterLayout& parameter, std::int64_t step) const;
};

/// Throws NotSupported for a strategy that the table refuses or a schedule that cannot be cut into steps, BadInput for
/// one that the checker does not prove.
Plan make_plan(const workload::Workload& workload, const Strategy& strategy);

/// A rank's coordinates.
struct Place {
  Rank rank{0};
  std::int64_t pp = 0, dp = 0, tp = 0;
};
Place place_of(const Mesh& mesh, Rank rank);

/// Whether the rank's copy of the parameter is the one that counts; of it, only what the tp coordinate owns.
bool is_primary(const Plan& plan, const ParameterLayout& parameter, const Place& place);
/// The rank that counts element `index` of the logical tensor.
Rank primary_holder(const Plan& plan, const ParameterLayout& parameter, std::int64_t index);

}  // namespace shardproof::plan
