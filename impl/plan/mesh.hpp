// SPDX-License-Identifier: Apache-2.0
// Which rank stands where: the world as a box whose axes are those of the strategy, in the strategy's order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/core/memory_ledger.hpp"

namespace shardproof::plan {

enum class Axis : std::uint8_t { pp, dp, tp };
inline constexpr std::size_t axis_count = 3;
std::string_view name_of(Axis axis);

class Mesh {
 public:
  /// sizes[axis]; `order` is a permutation of all axes, outermost first.
  Mesh(std::array<std::int64_t, axis_count> sizes, std::array<Axis, axis_count> order);

  std::int64_t size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  std::int64_t ranks() const;
  std::int64_t coordinate(Rank rank, Axis axis) const;
  Rank rank_at(std::array<std::int64_t, axis_count> coordinates) const;  ///< coordinates[axis]
  /// The ranks that differ from `rank` in these axes only, itself included, ascending by their coordinates (not by
  /// rank): the order does not depend on the mesh's.
  std::vector<Rank> group(Rank rank, std::span<const Axis> axes) const;

 private:
  std::array<std::int64_t, axis_count> sizes_;
  std::array<Axis, axis_count> order_;
};

}  // namespace shardproof::plan
