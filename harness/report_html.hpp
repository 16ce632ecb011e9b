// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/report_data.hpp"

namespace shardproof::harness {

/// One page that needs no other file, no network and no script: verdicts (failures first, with what repeats them),
/// throughput, efficiency, time, bubble, memory and traffic beside their forms, timelines, every figure, environment.
/// Numbers carry data- attributes (results/README.md). A figure says its kind: wall, replay or formula.
std::string report_html(const ReportData& data);

}  // namespace shardproof::harness
