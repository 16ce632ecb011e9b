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

}  // namespace

RankForm rank_form(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                   Rank rank, const RoleBytes& bytes, std::int64_t samples, std::int64_t step) {
  const plan::Mesh mesh = mesh_of(strategy);
  const std::int64_t pp = mesh.coordinate(rank, Axis::pp), tp = mesh.coordinate(rank, Axis::tp);
  const std::int64_t parts = strategy.microbatches, first = mesh.coordinate(rank, Axis::dp) * parts;
  const auto& ids = pipeline.placement.stages_of(pp);

  RankForm form;
  for (const auto stage : ids) form.stages.push_back(holding(workload, strategy, stage, tp));
  form.samples.assign(ids.size(), 0);
  std::vector<std::int64_t> first_samples(ids.size(), -1);
  Flight flight;
  for (const plan::Action& action : pipeline.schedule.ranks.at(static_cast<std::size_t>(pp))) {
    const auto k = static_cast<std::size_t>(std::ranges::lower_bound(ids, action.stage) - ids.begin());
    const auto own = plan::part_of(samples, strategy.dp * parts, first + action.microbatch % parts).size();
    const StageBytes stage{workload, form.stages[k], bytes};
    flight.act(action.kind, stage.saved(own), stage.kept(own));
    const bool is_of_step = !pipeline.is_stale() || action.microbatch / parts == step - 1;
    if (action.kind != ActionKind::forward || !is_of_step) continue;
    form.samples[k] += own;
    if (first_samples[k] < 0) first_samples[k] = own;
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
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (first_samples[k] >= 0) StageBytes{workload, form.stages[k], bytes}.add_parts(first_samples[k], form.saved);
    form.flops += flops(workload, form.stages[k], form.samples[k]);
  }
  return form;
}

}  // namespace shardproof::predict
