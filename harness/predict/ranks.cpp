// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/ranks.hpp"

#include <algorithm>

#include "impl/plan/checker.hpp"
#include "impl/plan/weight_versions.hpp"

namespace shardproof::predict {
namespace {

using plan::ActionKind;
using plan::Axis;

/// Of one stage that the rank holds.
struct StageBytes {
  const workload::Workload& workload;
  const Holding& stage;
  const RoleBytes& bytes;

  std::int64_t saved(std::int64_t samples) const { return saved_stage_bytes(workload, stage, bytes, samples); }
  std::int64_t kept(std::int64_t samples) const { return kept_for_weights_bytes(workload, stage, bytes, samples); }
  void add_parts(std::int64_t samples, std::vector<PartBytes>& parts) const {
    if (stage.is_first) parts.push_back({"embedding", saved_embedding_bytes(workload, bytes, samples)});
    for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer)
      parts.push_back({"blocks." + std::to_string(layer), saved_block_bytes(workload, stage, bytes, samples)});
    if (stage.is_last) parts.push_back({"head", saved_head_bytes(workload, stage, bytes, samples)});
  }
};

/// What is in flight as a rank goes through its actions.
class Flight {
 public:
  void act(ActionKind kind, std::int64_t saved, std::int64_t kept) {
    switch (kind) {
      case ActionKind::forward: ++microbatches_, bytes_ += saved; break;
      case ActionKind::backward_input: bytes_ += kept - saved; break;
      case ActionKind::backward_weight: --microbatches_, bytes_ -= kept; break;
      case ActionKind::backward: --microbatches_, bytes_ -= saved; break;
      case ActionKind::update: break;
    }
    most_microbatches = std::max(most_microbatches, microbatches_), most_bytes = std::max(most_bytes, bytes_);
  }
  std::int64_t most_microbatches = 0, most_bytes = 0;

 private:
  std::int64_t microbatches_ = 0, bytes_ = 0;
};

/// Of a step, by stage that the rank holds: those whose microbatches it runs.
std::vector<std::int64_t> samples_by_stage(const plan::Strategy& strategy, const plan::Pipeline& pipeline, Rank rank,
                                           std::int64_t samples, std::int64_t step) {
  const plan::Mesh mesh = mesh_of(strategy);
  const std::int64_t pp = mesh.coordinate(rank, Axis::pp), dp = mesh.coordinate(rank, Axis::dp);
  const std::int64_t parts = strategy.microbatches, before = pipeline.is_stale() ? (step - 1) * parts : 0;
  std::vector<std::int64_t> by_stage;
  for (const auto stage : pipeline.placement.stages_of(pp)) {
    std::int64_t& sum = by_stage.emplace_back(0);
    for (std::int64_t k = 0; k < parts; ++k)
      if (pipeline.placement.rank_of(stage, before + k) == pp)
        sum += plan::part_of(samples, strategy.dp * parts, dp * parts + k).size();
  }
  return by_stage;
}

Flops sum_of(const workload::Workload& workload, const std::vector<Holding>& stages,
             const std::vector<std::int64_t>& samples) {
  Flops sum;
  for (std::size_t k = 0; k < stages.size(); ++k) sum += flops(workload, stages[k], samples[k]);
  return sum;
}

std::vector<Holding> holdings(const workload::Workload& workload, const plan::Strategy& strategy,
                              const plan::Pipeline& pipeline, Rank rank) {
  const plan::Mesh mesh = mesh_of(strategy);
  std::vector<Holding> stages;
  for (const auto stage : pipeline.placement.stages_of(mesh.coordinate(rank, Axis::pp)))
    stages.push_back(holding(workload, strategy, stage, mesh.coordinate(rank, Axis::tp)));
  return stages;
}

}  // namespace

RankForm rank_form(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                   Rank rank, const RoleBytes& bytes, std::int64_t samples, std::int64_t step) {
  const plan::Mesh mesh = mesh_of(strategy);
  const std::int64_t pp = mesh.coordinate(rank, Axis::pp);
  const std::int64_t parts = strategy.microbatches, first = mesh.coordinate(rank, Axis::dp) * parts;
  const auto& ids = pipeline.placement.stages_of(pp);

  RankForm form;
  form.stages = holdings(workload, strategy, pipeline, rank);
  form.samples = samples_by_stage(strategy, pipeline, rank, samples, step);
  form.flops = sum_of(workload, form.stages, form.samples);
  std::vector<std::int64_t> first_samples(ids.size(), -1);
  Flight flight;
  for (const plan::Action& action : pipeline.schedule.ranks.at(static_cast<std::size_t>(pp))) {
    const auto k = static_cast<std::size_t>(std::ranges::lower_bound(ids, action.stage) - ids.begin());
    const auto own = plan::part_of(samples, strategy.dp * parts, first + action.microbatch % parts).size();
    const StageBytes stage{workload, form.stages[k], bytes};
    flight.act(action.kind, stage.saved(own), stage.kept(own));
    const bool is_of_step = !pipeline.is_stale() || action.microbatch / parts == step - 1;
    if (action.kind == ActionKind::forward && is_of_step && first_samples[k] < 0) first_samples[k] = own;
  }
  form.microbatches_in_flight = flight.most_microbatches;
  const Count held = count(workload, form.stages);
  const plan::ScheduleIndex index(pipeline.schedule, plan::extent_of(pipeline.schedule));
  const std::int64_t copies =
      pipeline.is_stale() ? plan::weight_versions(pipeline.schedule, index).most_kept.at(static_cast<std::size_t>(pp))
                          : 1;
  form.memory = {.parameter = (held.elements + (copies - 1) * held.trainable_elements) * bytes.parameter,
                 .gradient = held.trainable_elements * bytes.gradient,
                 .optimizer_state = held.trainable_elements * state_tensors(workload.optimizer) * bytes.state,
                 .saved = flight.most_bytes};
  for (std::size_t k = 0; k < ids.size(); ++k)
    if (first_samples[k] >= 0) StageBytes{workload, form.stages[k], bytes}.add_parts(first_samples[k], form.saved);
  return form;
}

Flops rank_flops(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                 Rank rank, std::int64_t samples, std::int64_t step) {
  return sum_of(workload, holdings(workload, strategy, pipeline, rank),
                samples_by_stage(strategy, pipeline, rank, samples, step));
}

}  // namespace shardproof::predict
