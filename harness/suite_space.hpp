// SPDX-License-Identifier: Apache-2.0
// What an entry of a suite stands for: the combinations of its workloads, factors and strategies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case.hpp"
#include "impl/plan/strategy.hpp"

namespace shardproof::plan {
struct KeyRow;
}

namespace shardproof::harness {

/// A setting of the workload, with its levels as texts: KEY=VALUE.
using SettingFactor = std::vector<std::string>;

/// A key of the strategy, with its levels, each in a strategy that has no other.
struct StrategyFactor {
  const plan::KeyRow* row;
  std::vector<plan::Strategy> levels;
};
/// "" stands for the default. Throws BadInput: no such key, an illegal value.
StrategyFactor strategy_factor(std::string_view key, const std::vector<std::string>& values);

/// A strategy, and the ranks that it is given.
struct GivenStrategy {
  std::string strategy;
  std::int64_t ranks = 1;
};

struct Space {
  std::vector<std::string> workloads;
  std::vector<std::string> fixed;  ///< settings of all
  std::vector<SettingFactor> settings;
  std::string steps;                     ///< a setting of all, the last; "" for none
  std::vector<StrategyFactor> strategy;  ///< none: the given ones
  std::int64_t most_ranks = 8;           ///< combinations that need more are not legal
  std::vector<GivenStrategy> given;      ///< of each combination one case with each; none: strategy factors
  std::vector<Track> tracks;             ///< of each of those one case on each
};

struct Expanded {
  std::vector<Case> cases;  ///< strategies in canonical form; ranks are those of the mesh
  std::int64_t covered = 0, legal = 0;
};

/// With strategy factors, the combinations whose strategy is legal for the workload, which is read (BadInput); without,
/// all of them. `pairs`: of these, a few that hold every legal pair of levels (pairwise.hpp), the workload counting as
/// a factor; else all.
Expanded expand(const Space& space, bool pairs);

/// Cases before any is found illegal.
double size_of(const Space& space);
/// Pairs of levels of two of its factors.
double pairs_of(const Space& space);

/// What expand() makes without `pairs`, one case after the other for spaces that are too large to hold: in an order in
/// which any beginning is spread over the whole, the same each time.
class Grid {
 public:
  /// Of the combinations in their order, every shards-th from the shard-th on, which is from 1. The space outlives it.
  /// Throws BadInput for more than 2^62 combinations.
  Grid(const Space& space, std::int64_t shard, std::int64_t shards);
  Grid(Grid&& other) noexcept;
  ~Grid();
  /// Looks at one combination: its cases, or none if it is not legal. No value: there are no more.
  std::optional<std::vector<Case>> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardproof::harness
