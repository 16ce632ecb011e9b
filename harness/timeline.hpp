// SPDX-License-Identifier: Apache-2.0
// A Chrome trace, read back for a picture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace shardproof::harness {

struct TimelineSpan {
  std::string name;
  double start = 0, end = 0;  ///< microseconds
};

struct Timeline {
  std::string title = {};
  /// By process, then by the lane's name, each lane in order of its start.
  std::map<std::int64_t, std::map<std::string, std::vector<TimelineSpan>>> ranks = {};
};

/// Reads the "X" events, and the lanes' names from "thread_name" events ("lane 3" where there is none). Throws
/// BadInput: unreadable, not JSON, no list "traceEvents", an event whose times are no finite numbers, or no event.
Timeline read_timeline(const std::filesystem::path& path);

}  // namespace shardproof::harness
