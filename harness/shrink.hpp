// SPDX-License-Identifier: Apache-2.0
// Delta debugging (Zeller and Hildebrandt 2002) of a case that fails.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/case.hpp"

namespace shardproof::harness {

struct Shrunk {
  Case value;              ///< the smallest that was found
  std::int64_t tried = 0;  ///< cases that were run
};

/// Makes the case smaller as long as `fails` says so of the result: fewer ranks, keys of the strategy at their
/// defaults, fewer steps, a smaller shape, options off; until nothing smaller fails, or `most` cases were tried. What
/// `fails` throws ends it.
Shrunk shrink(const Case& value, const std::function<bool(const Case&)>& fails, std::int64_t most);

}  // namespace shardproof::harness
