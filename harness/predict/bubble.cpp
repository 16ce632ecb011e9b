// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/bubble.hpp"

namespace shardproof::predict {

std::optional<double> bubble_overhead(std::string_view schedule, std::int64_t p, std::int64_t m) {
  const double others = static_cast<double>(p - 1);
  if (schedule == "gpipe") return others / static_cast<double>(m);
  if (schedule == "naive") return others;
  return std::nullopt;
}

double bubble_fraction(double overhead) { return overhead / (1 + overhead); }

}  // namespace shardproof::predict
