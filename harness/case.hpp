// SPDX-License-Identifier: Apache-2.0
// What is run and judged: a workload with settings, a strategy, ranks, a track, a device and a transport.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/track.hpp"

namespace shardproof::harness {

struct Case {
  std::string workload;               ///< a built-in name, random:SEED:INDEX, or a file
  std::vector<std::string> settings;  ///< KEY=VALUE
  std::string strategy = "dp1";
  std::int64_t ranks = 1;
  Track track = Track::exact;

  bool operator==(const Case&) const = default;
};

/// "tiny dropout=0.1 | dp1 microbatches=3 | 1 rank | exact | cpu | threads": the filter, the record's key, and what
/// `shardproof check` takes. A word of the workload's part that has a blank or '|' in it, or begins with '"', stands in
/// double quotes, with a backslash before '"' and backslash. Parses back.
std::string print(const Case& value);
/// As a list prints it, with the name of its entry: "... | threads  # dropout". A case too: it parses back.
std::string listed(const Case& value, std::string_view entry);
/// What stands behind '#' after the strategy is a comment. Throws BadInput naming the part that is wrong.
Case parse_case(std::string_view text);

/// Whether the pattern, in which '*' stands for any run of characters, is the printed or listed case or the name of
/// its entry.
bool selects(std::string_view pattern, std::string_view entry, const Case& value);

}  // namespace shardproof::harness
