// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_rules.hpp"

#include <fmt/format.h>

#include "suites/workload/text.hpp"

namespace shardproof::plan {

std::string unused_shape(const ScheduleShape& shape, const ShapeUse& use, std::int64_t chunks) {
  if (!use.chunks && shape.chunks != chunks)
    return fmt::format("chunks {}: a rank holds {} stage{}", shape.chunks, chunks, plural(chunks));
  if (!use.slices && shape.slices != 1)
    return fmt::format("slices {}: it takes whole sequences, slices 1", shape.slices);
  if (!use.updates && shape.microbatches_per_update != 0)
    return fmt::format("microbatches per update {}: it has no updates but at the end", shape.microbatches_per_update);
  if (!use.replicas && !shape.replicas.empty())
    return fmt::format("{}: a stage is on one rank but in pipedream",
                       workload::shortened(fmt::format("replicas {}", fmt::join(shape.replicas, ","))));
  if (!use.replicas && shape.vertical_sync) return "vertical sync on: it is of pipedream alone, off";
  return "";
}

std::string_view plural(std::int64_t count) { return count == 1 ? "" : "s"; }

void append(std::vector<Action>& actions, const ScheduleShape& shape, const Action& action) {
  if (shape.slices == 1) return actions.push_back(action);
  for (std::int64_t k = 0; k < shape.slices; ++k) {
    Action part = action;
    part.slice = action.kind == ActionKind::forward ? k : shape.slices - 1 - k;
    actions.push_back(part);
  }
}

}  // namespace shardproof::plan
