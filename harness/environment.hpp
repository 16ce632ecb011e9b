// SPDX-License-Identifier: Apache-2.0
// Where and by what a result was made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardproof::harness {

struct Environment {
  std::string host, system;  ///< system: kernel name, release, machine
  std::string processor;
  std::int64_t cores = 0;         ///< that this run's processes may use, of all machines
  std::int64_t memory_bytes = 0;  ///< physical, or the control group's limit if smaller
  std::string compiler, flags, preset, version;
  std::string commit;  ///< of the sources, when the binary was built; "unknown" outside a git checkout
  bool dirty = false;  ///< sources differed from the commit
  /// Name and version of every library and optional part; "not built" where this binary lacks it.
  std::vector<std::pair<std::string, std::string>> libraries;
  /// Environment variables that change how a run computes, where set.
  std::vector<std::pair<std::string, std::string>> variables;

  bool operator==(const Environment&) const = default;
};

/// Of this process.
Environment environment();

/// The first field that differs, and its two values; the two must not be equal.
std::string difference(const Environment& a, const Environment& b);

/// One JSON object in one line.
std::string to_json(const Environment& environment);
/// Throws BadInput with every finding, one a line, each starting with `origin`.
Environment parse_environment(std::string_view json_text, std::string_view origin);

}  // namespace shardproof::harness
