// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::harness {

/// What a paper says beside ours.
struct PaperCell {
  std::string kind;      ///< published: a number that the paper prints; formula: its closed form, evaluated here
  std::string where;     ///< in which paper; of a formula with its text
  std::string schedule;  ///< with its shape, "zb_h1, 8 ranks, 24 microbatches"
  std::string quantity;  ///< of schedule_quantities()
  double value = 0, ours = 0, tolerance = 0;
  bool agrees() const;
};

/// Of suites/papers/schedules.json (generated).
std::string_view paper_schedules();
/// Makes and replays each cell's schedule. Throws BadInput with every finding for another text.
std::vector<PaperCell> paper_cells(std::string_view json);

struct PaperReport {
  std::string text;
  bool agree;  ///< all cells, of which there is one
};
PaperReport paper_report(std::span<const PaperCell> cells);

}  // namespace shardproof::harness
