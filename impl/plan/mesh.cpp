// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/mesh.hpp"

#include <algorithm>
#include <string>

#include "impl/plan/range.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

constexpr std::array all_axes = {Axis::pp, Axis::dp, Axis::tp};

std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, axis_count> names = {"pp", "dp", "tp"};
  return names[index(axis)];
}

Mesh::Mesh(std::array<std::int64_t, axis_count> sizes, std::array<Axis, axis_count> order)
    : sizes_(sizes), order_(order) {
  for (const Axis axis : all_axes) {
    if (size(axis) < 1) throw InternalError("mesh: size of " + std::string(name_of(axis)) + " below 1");
    if (std::ranges::count(order, axis) != 1)
      throw InternalError("mesh: the order is no permutation, " + std::string(name_of(axis)) + " is not in it once");
  }
}

std::int64_t Mesh::ranks() const { return size(Axis::pp) * size(Axis::dp) * size(Axis::tp); }

std::int64_t Mesh::coordinate(Rank rank, Axis axis) const {
  auto rest = static_cast<std::int64_t>(rank);
  if (rest < 0 || rest >= ranks())
    throw InternalError("mesh: rank " + std::to_string(rest) + " of " + std::to_string(ranks()));
  for (auto inner = order_.rbegin(); *inner != axis; ++inner) rest /= size(*inner);
  return rest % size(axis);
}

Rank Mesh::rank_at(std::array<std::int64_t, axis_count> coordinates) const {
  std::int64_t rank = 0;
  for (const Axis axis : order_) {
    const std::int64_t coordinate = coordinates[index(axis)];
    if (coordinate < 0 || coordinate >= size(axis))
      throw InternalError("mesh: coordinate " + std::to_string(coordinate) + " on " + std::string(name_of(axis)) +
                          std::to_string(size(axis)));
    rank = rank * size(axis) + coordinate;
  }
  return static_cast<Rank>(rank);
}

std::vector<Rank> Mesh::group(Rank rank, std::span<const Axis> axes) const {
  std::array<Range, axis_count> ranges;
  for (const Axis axis : all_axes) {
    const std::int64_t at = coordinate(rank, axis);
    const bool varies = std::ranges::find(axes, axis) != axes.end();
    ranges[index(axis)] = varies ? Range{0, size(axis)} : Range{at, at + 1};
  }
  const auto& [pp, dp, tp] = ranges;
  std::vector<Rank> members;
  for (std::int64_t p = pp.begin; p < pp.end; ++p)
    for (std::int64_t d = dp.begin; d < dp.end; ++d)
      for (std::int64_t t = tp.begin; t < tp.end; ++t) members.push_back(rank_at({p, d, t}));
  return members;
}

}  // namespace shardproof::plan
