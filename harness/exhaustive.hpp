// SPDX-License-Identifier: Apache-2.0
// A suite with nothing left out: where an entry covers pairs, all legal combinations of its factors' levels instead.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "harness/check.hpp"
#include "harness/suite_space.hpp"

namespace shardproof::harness {

/// Cases are made one by one; of the grids only what was returned is kept.
class Exhaustive {
 public:
  /// Filters choose entries by name. The suite outlives this. Throws BadInput where no entry that is chosen covers
  /// pairs.
  Exhaustive(const Suite& suite, const Selection& selection);
  Exhaustive(const Exhaustive&) = delete;
  Exhaustive& operator=(const Exhaustive&) = delete;

  /// First the entries that have no grid, then a case of each grid in turn. What it points to lives as long as this. A
  /// shard is of the cases of the former, and of the combinations of each of the latter.
  std::optional<Selected> next();

  /// Of each grid its cases before any is found illegal, and from a thousand of them about how many are legal.
  std::string sizes() const;
  /// How far it came.
  std::string report() const;

 private:
  struct Walk {
    Entry entry;  ///< without cases, so that none is missed
    double size = 0;
    Grid grid;
    std::deque<Case> ready = {};
    bool ended = false;
  };

  const Selection selection_;
  std::vector<Selected> plain_;
  std::size_t next_plain_ = 0, turn_ = 0;
  std::deque<Walk> walks_;
  std::deque<Case> made_;
  double looked_at_ = 0;  // cases, legal or not
};

}  // namespace shardproof::harness
