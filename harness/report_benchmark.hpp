// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/report_data.hpp"

namespace shardproof::harness {

/// Google Benchmark's JSON, for its compare.py: a benchmark for each case whose steps were timed, its time the median
/// of a step in nanoseconds (compare.py prints no decimals), its counters the other figures that are finite; several
/// records of one case are repetitions. A case that was judged and did not pass is an error, without a time. cpu_time
/// is not measured: 0.
std::string benchmark_json(const ReportData& data);

}  // namespace shardproof::harness
