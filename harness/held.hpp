// SPDX-License-Identifier: Apache-2.0
// Ledgers beside their forms, as reports show them: one row for all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record.hpp"

namespace shardproof::harness {

/// A ledger and its form, of one rank or of several under one name.
struct Held {
  std::string name;  ///< without the rank
  std::vector<std::int64_t> counted;
  std::vector<std::int64_t> forms;  ///< fewer than counted where there are none
  bool equal = true;                ///< each form there is to its ledger
};

/// Of the ledgers that begin with `start` and end with `end`, by name, in the record's order.
std::vector<Held> held(const Record& record, std::string_view start, std::string_view end);

/// "traffic_tp_all_reduce_mlp_row_output_wire_bytes" in parts.
struct TrafficName {
  std::string axis, kind, purpose;
};
/// Precondition: the name of a ledger of traffic, with one of the units _calls, _payload_bytes, _wire_bytes.
TrafficName traffic_name(std::string_view name);

}  // namespace shardproof::harness
