// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "suites/workload/workload.hpp"

namespace shardproof::predict {

/// A workload's sizes under the letters of the literature.
struct Shape {
  explicit Shape(const workload::Workload& workload);

  std::int64_t l, s, h, a;  ///< layers, sequence, hidden, heads
  std::int64_t k, m, v;     ///< width of keys and values, hidden width of the MLP, vocabulary
  bool shared;              ///< two layers use one block's parameters

  std::int64_t own_blocks() const { return l - (shared ? 1 : 0); }
};

/// Whether a parameter of this name is frozen. `*` in a pattern matches any run of characters.
bool is_frozen(const workload::Workload& workload, std::string_view name);

/// Elements of the frozen parameters.
std::int64_t frozen_count(const workload::Workload& workload);

}  // namespace shardproof::predict
