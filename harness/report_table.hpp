// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "harness/record.hpp"
#include "harness/report_data.hpp"

namespace shardproof::harness {

/// For a terminal: the measured cases of each workload, track and environment by tokens/s, the fastest first, with
/// quartiles and the places that a case may have: those whose quartiles overlap are indistinguishable. By wall time;
/// where one of them has more ranks than there are processors, by replay if all have it. Below, the cases that are
/// not ranked, with why. Beside it efficiency (ReportData), bubble, both of the kind that it is ranked by, and the peak
/// memory of the rank that took most. "" for no case.
std::string table_of(const ReportData& data);
std::string table_of(std::span<const Record> records);

}  // namespace shardproof::harness
