// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/plan.hpp"

#include <algorithm>
#include <array>

#include "impl/plan/checker.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {

Pipeline pipeline_of(const Strategy& strategy, std::int64_t steps) {
  const ScheduleShape shape = schedule_shape(strategy, steps);
  Schedule schedule = generate(schedule_generator(strategy.schedule), shape);
  const auto wrong = findings(schedule, shape.stages(), shape.microbatches);
  if (!wrong.empty()) throw BadInput("schedule " + strategy.schedule.text() + ": " + workload::joined(wrong, "\n"));
  return Pipeline(std::move(schedule));
}

std::int64_t Pipeline::steps_per_update(std::int64_t stage) const {
  const bool takes_turns = schedule.weights == WeightRule::stashed || schedule.weights == WeightRule::vertical_sync;
  return takes_turns ? std::ssize(placement.ranks_of(stage)) : 1;
}

Plan make_plan(const workload::Workload& workload, const Strategy& strategy) {
  require_legal(strategy, workload);
  Plan plan{strategy, mesh_of(strategy), layout(workload, strategy), pipeline_of(strategy, workload.steps)};
  if (plan.pipeline.is_stale()) plan.stale = stale_order(plan.pipeline.schedule, strategy.microbatches);
  return plan;
}

std::vector<std::int64_t> Plan::holders(const ParameterLayout& parameter) const {
  std::vector<std::int64_t> holders;
  for (const auto stage : parameter.stages())
    for (const auto rank : pipeline.placement.ranks_of(stage))
      if (std::ranges::find(holders, rank) == holders.end()) holders.push_back(rank);
  return holders;
}

bool Plan::is_updated(const ParameterLayout& parameter, std::int64_t step) const {
  return step % pipeline.steps_per_update(parameter.stages().front()) == 0;
}

Place place_of(const Mesh& mesh, Rank rank) {
  return {rank, mesh.coordinate(rank, Axis::pp), mesh.coordinate(rank, Axis::dp), mesh.coordinate(rank, Axis::tp)};
}

bool is_primary(const Plan& plan, const ParameterLayout& parameter, const Place& place) {
  return place.dp == 0 && place.pp == plan.holders(parameter).front();
}

Rank primary_holder(const Plan& plan, const ParameterLayout& parameter, std::int64_t index) {
  const auto& dims = parameter.parameter.dims;
  const auto dim = static_cast<std::size_t>(std::max<std::int64_t>(parameter.split_dim, 0));
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < dims.size(); ++d) inner *= dims[d];
  const std::int64_t at = index / inner % dims.at(dim);
  const auto owner = std::ranges::find_if(parameter.owned, [=](Range r) { return r.begin <= at && at < r.end; });
  if (owner == parameter.owned.end()) throw InternalError("layout: nobody owns " + parameter.parameter.name);
  std::array<std::int64_t, axis_count> coordinates{};
  coordinates[static_cast<std::size_t>(Axis::pp)] = plan.holders(parameter).front();
  coordinates[static_cast<std::size_t>(Axis::tp)] = owner - parameter.owned.begin();
  return plan.mesh.rank_at(coordinates);
}

}  // namespace shardproof::plan
