// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/ranks.hpp"

#include "kernels/core/errors.hpp"

namespace shardproof::predict {
namespace {

using plan::Axis;

bool keeps_all_microbatches(const plan::Strategy& strategy) {
  if (strategy.schedule == "naive") return false;
  if (strategy.schedule == "gpipe") return true;
  throw NotSupported("schedule=" + strategy.schedule + " has no form of its memory");
}

std::vector<PartBytes> parts_of(const Holding& holding, const Memory& memory) {
  std::vector<PartBytes> parts;
  if (holding.is_first) parts.push_back({"embedding", memory.saved_embedding});
  for (std::int64_t layer = holding.layers.begin; layer < holding.layers.end; ++layer)
    parts.push_back({"blocks." + std::to_string(layer), memory.saved_block});
  if (holding.is_last) parts.push_back({"head", memory.saved_head});
  return parts;
}

}  // namespace

RankForm rank_form(const workload::Workload& workload, const plan::Strategy& strategy, Rank rank,
                   const RoleBytes& bytes, std::int64_t samples) {
  const plan::Mesh mesh = mesh_of(strategy);
  const std::int64_t parts = strategy.microbatches, first = mesh.coordinate(rank, Axis::dp) * parts;
  const auto part = [&](std::int64_t k) { return plan::part_of(samples, strategy.dp * parts, first + k); };
  const bool keeps_all = keeps_all_microbatches(strategy);

  RankForm form{
      .holding = holding(workload, strategy, mesh.coordinate(rank, Axis::pp), mesh.coordinate(rank, Axis::tp)),
      .samples = part(parts - 1).end - part(0).begin,
      .largest_microbatch = part(0).size(),
      .microbatches_in_flight = keeps_all ? parts : 1,
      .memory = {},
      .saved = {},
      .flops = {}};
  form.memory = memory(workload, form.holding, bytes, form.largest_microbatch,
                       keeps_all ? form.samples : form.largest_microbatch);
  form.saved = parts_of(form.holding, form.memory);
  form.flops = flops(workload, form.holding, form.samples);
  return form;
}

}  // namespace shardproof::predict
