// SPDX-License-Identifier: Apache-2.0
// What is derived from the records of a run, as files.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>

#include "harness/report_data.hpp"

namespace shardproof::harness {

inline constexpr std::array report_names = {"report.html", "records.csv", "benchmark.json"};

/// The traces of a run folder: trace.json of its first case, trace-N.json of its Nth; at most 8 are read. Throws
/// BadInput where one is no trace.
std::vector<Timeline> read_timelines(const std::filesystem::path& folder, std::span<const ReportedCase> cases);

/// The runs of the folders. Throws BadInput with every finding, one a line: what read_run() and read_timelines()
/// refuse, and, unless `mixed`, a folder whose records were made in different circumstances.
ReportData read_reported(std::span<const std::string> folders, bool mixed);

/// Writes each of report_names, whole or not at all. Throws WriteError.
void write_reports(const std::filesystem::path& folder, const ReportData& data);

}  // namespace shardproof::harness
