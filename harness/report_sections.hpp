// SPDX-License-Identifier: Apache-2.0
// The sections of report.html, each with its heading; "" where there is nothing to show.
#pragma once

#include <span>
#include <string>

#include "harness/report_data.hpp"

namespace shardproof::harness {

/// How many cases sections of many numbers show; records.csv has all.
inline constexpr std::size_t most_detailed = 200;

/// Places in data.cases(): what did not pass, then what was measured, then the rest; at most most_detailed.
std::vector<std::size_t> detailed_cases(const ReportData& data);

/// "2: tiny | dp2 | ..." as the first cell of a row.
std::string case_head(const ReportData& data, std::size_t index);

std::string verdict_section(const ReportData& data);
std::string throughput_section(const ReportData& data);
std::string time_section(const ReportData& data);
std::string bubble_section(const ReportData& data);
std::string memory_section(const ReportData& data, std::span<const std::size_t> shown);
std::string traffic_section(const ReportData& data, std::span<const std::size_t> shown);
std::string timeline_section(const ReportData& data);
std::string figure_section(const ReportData& data, std::span<const std::size_t> shown);
std::string environment_section(const ReportData& data);

}  // namespace shardproof::harness
