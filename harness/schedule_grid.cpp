// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_grid.hpp"

#include <fmt/format.h>

#include "impl/plan/checker.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

void visit(const plan::ScheduleGenerator& generator, const plan::ScheduleShape& shape, ScheduleGrid& grid) {
  const std::string name(generator.name);
  if (const std::string why = generator.refusal(shape); !why.empty()) {
    ++grid.refused[fmt::format("{}: {}", name, why)];
    return;
  }
  plan::Schedule schedule = generator.generate(shape);
  const plan::ScheduleExtent extent{shape.stages(), shape.microbatches, shape.slices == 1 ? 0 : shape.slices};
  for (const std::int64_t more : {0, 1, 2}) {
    schedule.send_depth += more;
    const auto texts = plan::texts_of(plan::prove(schedule, extent));
    if (texts.empty()) continue;
    grid.failures.push_back(fmt::format("{} ranks {} microbatches {} chunks {} slices {} depth {}: {}", name,
                                        shape.ranks, shape.microbatches, shape.chunks, shape.slices,
                                        schedule.send_depth, workload::joined(texts, "; ")));
    return;
  }
  ++grid.proven[name];
}

}  // namespace

ScheduleGrid check_grid() {
  ScheduleGrid grid;
  for (const auto* generator : plan::schedules())
    for (std::int64_t p = 1; p <= 8; ++p)
      for (std::int64_t m = 1; m <= 2 * p + 1; ++m)
        for (std::int64_t chunks = 1; chunks <= 3; ++chunks)
          for (std::int64_t slices = 1; slices <= 3; ++slices)
            visit(*generator, {.ranks = p, .microbatches = m, .chunks = chunks, .slices = slices}, grid);
  return grid;
}

}  // namespace shardproof::harness
