// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardproof::harness {

/// A published number beside ours.
struct PaperCell {
  std::string where, schedule, quantity;  ///< schedule: with its shape, "zb_h1, 8 ranks, 24 microbatches"
  double published = 0, ours = 0, tolerance = 0;
  bool agrees() const;
};

/// Of suites/papers/schedules.json (generated).
std::string_view paper_schedules();
/// Makes and replays each cell's schedule. Throws BadInput with every finding for another text.
std::vector<PaperCell> paper_cells(std::string_view json);

}  // namespace shardproof::harness
