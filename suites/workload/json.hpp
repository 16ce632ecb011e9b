// SPDX-License-Identifier: Apache-2.0
// Reading JSON that people and other programs write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace shardproof::workload {

/// A key that its object had already.
struct DoubledKey {
  int depth;  ///< 1: of the outermost object
  std::string key;
};

/// The value that is the whole of text, with objects in the order of the text; of doubled keys the last one counts, and
/// every further one is added to `doubled`. Throws BadInput starting with `origin`: not JSON (with the place), or
/// nested more than 64 deep (what walks through a value may then recurse).
nlohmann::ordered_json parse_json(std::string_view text, std::string_view origin, std::vector<DoubledKey>& doubled);

}  // namespace shardproof::workload
