// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_grid.hpp"

#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "impl/plan/checker.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

std::string text_of(const plan::ScheduleShape& s) {
  std::string text =
      fmt::format("ranks {} microbatches {} chunks {} slices {}", s.ranks, s.microbatches, s.chunks, s.slices);
  if (!s.replicas.empty()) text += fmt::format(" replicas {}", fmt::join(s.replicas, ","));
  if (s.vertical_sync) text += " vertical sync";
  if (s.microbatches_per_update != 0) text += fmt::format(" microbatches per update {}", s.microbatches_per_update);
  return text;
}

/// What the checker says of it with some depth of sends; "" where it is proven with each.
std::string fault(const plan::ScheduleGenerator& generator, const plan::ScheduleShape& shape) {
  try {
    plan::Schedule schedule = generator.generate(shape);
    const plan::ScheduleExtent extent = plan::extent_of(shape);
    const std::int64_t own = schedule.send_depth;
    for (const std::int64_t more : {0, 1, 3}) {
      schedule.send_depth = own + more;
      const auto texts = plan::texts_of(plan::prove(schedule, extent));
      if (!texts.empty()) return fmt::format("depth {}: {}", schedule.send_depth, workload::joined(texts, "; "));
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void visit(const plan::ScheduleGenerator& generator, const plan::ScheduleShape& shape, ScheduleGrid& grid) {
  const std::string name(generator.name);
  if (const std::string why = generator.refusal(shape); !why.empty()) {
    ScheduleGrid::Refusals& refusals = grid.refused[{name, why.substr(0, why.find(' '))}];
    if (refusals.shapes++ == 0) refusals.why = why;
  } else if (const std::string found = fault(generator, shape); !found.empty()) {
    grid.failures.push_back(fmt::format("{} {} {}", name, text_of(shape), found));
  } else {
    ++grid.proven[name];
  }
}

/// What few schedules take, each alone.
std::vector<plan::ScheduleShape> special(std::int64_t p, std::int64_t m) {
  std::vector<plan::ScheduleShape> shapes = {
      {.ranks = p, .microbatches = m, .vertical_sync = true},
      {.ranks = p, .microbatches = m, .microbatches_per_update = p + 1},
      {.ranks = p, .microbatches = m, .replicas = {p}},
  };
  if (p > 1) {  // more ranks than the others at the first stage, and at the last
    for (const bool syncs : {false, true}) {
      shapes.push_back({.ranks = p, .microbatches = m, .replicas = {p - 1, 1}, .vertical_sync = syncs});
      shapes.push_back({.ranks = p, .microbatches = m, .replicas = {1, p - 1}, .vertical_sync = syncs});
    }
  }
  return shapes;
}

}  // namespace

ScheduleGrid check_grid(std::span<const plan::ScheduleGenerator* const> generators) {
  ScheduleGrid grid;
  for (const auto* generator : generators) {
    for (std::int64_t p = 1; p <= 8; ++p)
      for (std::int64_t m = 1; m <= 2 * p + 1; ++m) {
        for (std::int64_t chunks = 1; chunks <= 3; ++chunks)
          for (std::int64_t slices = 1; slices <= 3; ++slices)
            visit(*generator, {.ranks = p, .microbatches = m, .chunks = chunks, .slices = slices}, grid);
        for (const plan::ScheduleShape& shape : special(p, m)) visit(*generator, shape, grid);
      }
    if (grid.proven[std::string(generator->name)] == 0)
      grid.failures.push_back(fmt::format("{}: no shape is proven", generator->name));
  }
  return grid;
}

}  // namespace shardproof::harness
