// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "impl/plan/schedule.hpp"

namespace shardproof::harness {

struct ScheduleGrid {
  struct Refused {
    std::string schedule, field;  ///< field: of the shape, the first word of why: "slices"
    auto operator<=>(const Refused&) const = default;
  };
  struct Refusals {
    std::int64_t shapes = 0;
    std::string why = {};  ///< of the first of them
    bool operator==(const Refusals&) const = default;
  };
  std::map<std::string, std::int64_t> proven;  ///< by schedule
  std::map<Refused, Refusals> refused;
  /// Schedules that the checker does not prove, and those of which it has proven no shape.
  std::vector<std::string> failures;
};

/// Every schedule on 1 to 8 ranks and 1 to 2 p + 1 microbatches, with 1 to 3 chunks and 1 to 3 slices, with vertical
/// sync, with stages on several ranks, and with an update of more microbatches than ranks; with sends of its own depth
/// and of one and three more.
ScheduleGrid check_grid(std::span<const plan::ScheduleGenerator* const> generators = plan::schedules());

}  // namespace shardproof::harness
