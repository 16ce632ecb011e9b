// SPDX-License-Identifier: Apache-2.0
// Pairwise testing (Cohen, Dalal, Fredman and Patton 1997, "The AETG system"): few combinations of factors' levels in
// which every pair of levels of two factors stands that stands in any legal combination at all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shardproof::harness {

/// One level, from 0, of each factor.
using Combination = std::vector<std::size_t>;

struct CoveringArray {
  std::vector<Combination> rows;  ///< legal ones, each with a pair that no earlier one has
  std::int64_t covered = 0;       ///< pairs in the rows; of a single factor, its levels are counted instead
  std::int64_t legal = 0;         ///< pairs for which a legal combination was found
};

/// `levels` counts the levels of each factor, each above 0. The same arguments give the same rows. A pair's legal
/// combination is found by search: first at random, then among the legal ones known by changes of up to two other
/// factors. A pair that only stands beyond those is taken for illegal.
CoveringArray covering_array(std::span<const std::size_t> levels,
                             const std::function<bool(std::span<const std::size_t>)>& legal, std::uint64_t seed);

}  // namespace shardproof::harness
