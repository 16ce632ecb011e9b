// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/mesh.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "impl/plan/range.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

constexpr std::array axes = {Axis::pp, Axis::dp, Axis::tp};

std::vector<std::array<Axis, axis_count>> orders() {
  std::array order = axes;
  std::vector<std::array<Axis, axis_count>> all;
  do all.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return all;
}

std::vector<std::int64_t> numbers(const std::vector<Rank>& ranks) {
  std::vector<std::int64_t> list;
  for (const Rank rank : ranks) list.push_back(static_cast<std::int64_t>(rank));
  return list;
}

TEST(Range, PartsAreConsecutiveAndTheLargerComeFirst) {
  for (std::int64_t n : {0, 1, 2, 5, 7, 12, 13})
    for (std::int64_t parts : {1, 2, 3, 5, 7, 8, 20}) {
      std::int64_t end = 0, before = n;
      for (std::int64_t k = 0; k < parts; ++k) {
        const Range part = part_of(n, parts, k);
        EXPECT_EQ(part.begin, end);
        EXPECT_LE(part.size(), before);
        EXPECT_GE(part.size(), n / parts);
        EXPECT_LE(part.size(), (n + parts - 1) / parts);
        end = part.end, before = part.size();
      }
      EXPECT_EQ(end, n);
    }
}

TEST(Mesh, TheLastAxisOfTheOrderIsInnermost) {
  const Mesh mesh({2, 3, 4}, axes);  // pp2 dp3 tp4
  EXPECT_EQ(mesh.ranks(), 24);
  EXPECT_EQ(mesh.rank_at({1, 2, 3}), Rank{23});
  EXPECT_EQ(mesh.rank_at({1, 0, 2}), Rank{14});
  EXPECT_EQ(numbers(mesh.group(Rank{14}, std::array{Axis::tp})), (std::vector<std::int64_t>{12, 13, 14, 15}));
  EXPECT_EQ(numbers(mesh.group(Rank{14}, std::array{Axis::dp})), (std::vector<std::int64_t>{14, 18, 22}));
  EXPECT_EQ(numbers(mesh.group(Rank{14}, std::array{Axis::pp})), (std::vector<std::int64_t>{2, 14}));

  const Mesh turned({2, 3, 4}, {Axis::tp, Axis::dp, Axis::pp});
  EXPECT_EQ(turned.rank_at({1, 0, 2}), Rank{13});
  EXPECT_EQ(numbers(turned.group(Rank{13}, std::array{Axis::tp})), (std::vector<std::int64_t>{1, 7, 13, 19}));
}

TEST(Mesh, CoordinatesAndRanksAreInverse) {
  for (const auto& order : orders())
    for (const auto& sizes : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 3, 4}, {5, 1, 2}, {1, 7, 3}}) {
      const Mesh mesh(sizes, order);
      for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
        const Rank rank{static_cast<std::int32_t>(r)};
        std::array<std::int64_t, axis_count> at{};
        for (const Axis axis : axes) at[static_cast<std::size_t>(axis)] = mesh.coordinate(rank, axis);
        EXPECT_EQ(mesh.rank_at(at), rank);
      }
    }
}

// Over every set of axes the groups cut the world into equal parts, and all members agree on theirs, in its order.
TEST(Mesh, GroupsPartitionTheWorld) {
  for (const auto& order : orders()) {
    const Mesh mesh({2, 3, 4}, order);
    for (unsigned set = 0; set < 8; ++set) {
      std::vector<Axis> chosen;
      std::int64_t size = 1;
      for (const Axis axis : axes)
        if ((set >> static_cast<unsigned>(axis) & 1u) != 0) chosen.push_back(axis), size *= mesh.size(axis);
      std::set<std::vector<std::int64_t>> groups;
      std::multiset<std::int64_t> members;
      for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
        const auto group = numbers(mesh.group(Rank{static_cast<std::int32_t>(r)}, chosen));
        EXPECT_EQ(std::ssize(group), size);
        EXPECT_EQ(std::ranges::count(group, r), 1);
        if (groups.insert(group).second) members.insert(group.begin(), group.end());
      }
      EXPECT_EQ(std::ssize(groups) * size, mesh.ranks());
      EXPECT_EQ(std::set(members.begin(), members.end()).size(), members.size());
      EXPECT_EQ(std::ssize(members), mesh.ranks());
    }
  }
}

// Otherwise the order of a sum in floating point would depend on the mesh.
TEST(Mesh, TheOrderInsideAGroupIsThatOfTheCoordinates) {
  const std::array both = {Axis::tp, Axis::dp};
  for (const auto& order : orders()) {
    const Mesh mesh({2, 3, 4}, order);
    std::vector<std::array<std::int64_t, 2>> at;
    for (const Rank rank : mesh.group(Rank{0}, both))
      at.push_back({mesh.coordinate(rank, Axis::dp), mesh.coordinate(rank, Axis::tp)});
    EXPECT_TRUE(std::ranges::is_sorted(at));
    EXPECT_EQ(at.size(), 12u);
  }
}

TEST(Mesh, WhatIsNoMeshIsRefused) {
  EXPECT_THROW(Mesh({0, 1, 1}, axes), InternalError);
  EXPECT_THROW(Mesh({1, 1, 1}, {Axis::pp, Axis::pp, Axis::tp}), InternalError);
  const Mesh mesh({2, 3, 4}, axes);
  EXPECT_THROW(mesh.coordinate(Rank{24}, Axis::pp), InternalError);
  EXPECT_THROW(mesh.coordinate(Rank{-1}, Axis::pp), InternalError);
  EXPECT_THROW(mesh.rank_at({2, 0, 0}), InternalError);
}

}  // namespace
}  // namespace shardproof::plan
