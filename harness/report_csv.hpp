// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/report_data.hpp"

namespace shardproof::harness {

/// RFC 4180: a row for each case, the fields of its record first, then every figure (not measured: empty; not finite:
/// "nan"), then every ledger and, as form_NAME, its form: of several ranks the largest. Numbers read back exactly.
std::string report_csv(const ReportData& data);

}  // namespace shardproof::harness
