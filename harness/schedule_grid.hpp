// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardproof::harness {

struct ScheduleGrid {
  std::map<std::string, std::int64_t> proven;   ///< by schedule
  std::map<std::string, std::int64_t> refused;  ///< by schedule and the first words of why
  std::vector<std::string> failures;            ///< schedules that the checker does not prove
};

/// Every schedule on 1 to 8 ranks, 1 to 2 p + 1 microbatches, 1 to 3 chunks and 1 to 3 slices, with sends of its own
/// depth and of one and three more.
ScheduleGrid check_grid();

}  // namespace shardproof::harness
