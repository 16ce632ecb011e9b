// SPDX-License-Identifier: Apache-2.0
// Pictures of a report, as inline SVG.
#pragma once

#include <string>
#include <vector>

#include "harness/report_data.hpp"
#include "harness/timeline.hpp"

namespace shardproof::harness {

struct ChartPoint {
  double x;  ///< at least 1
  Spread y;
  bool crowded = false;  ///< by the clock, with more ranks than processors: a hollow mark
};
struct ChartSeries {
  std::string name;
  bool dashed = false;
  std::vector<ChartPoint> points;
};

/// Lines over a logarithmic axis whose marks are the points' own x, from 0 upwards, with quartiles as bars; a legend
/// below. `ideal` draws a line at 1. "" without a point.
std::string line_chart(const std::string& title, const std::string& x_axis, const std::string& y_axis,
                       const std::vector<ChartSeries>& series, bool ideal = false);

/// The last whole step of the timeline (all of it where it names no step): a row for each lane of each rank. Spans too
/// narrow to see are drawn together.
std::string timeline_picture(const Timeline& timeline);

}  // namespace shardproof::harness
