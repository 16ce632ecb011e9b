// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "suites/workload/workload.hpp"

namespace shardproof::predict {

/// A workload's sizes under the letters of the literature.
struct Shape {
  explicit Shape(const workload::Workload& workload);

  std::int64_t l, s, h, a;                         ///< layers, sequence, hidden, heads
  std::int64_t d, g;                               ///< width of a head; query heads that read one key/value head
  std::int64_t k, m, v;                            ///< width of keys and values, hidden width of the MLP, vocabulary
  std::int64_t first_site = -1, second_site = -1;  ///< the layers that share a block; -1: none do

  /// The layer whose parameters a layer uses.
  std::int64_t owner(std::int64_t layer) const { return layer == second_site ? first_site : layer; }
};

/// Whether a parameter of this name is frozen. `*` in a pattern matches any run of characters.
bool is_frozen(const workload::Workload& workload, std::string_view name);

}  // namespace shardproof::predict
