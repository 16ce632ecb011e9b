// SPDX-License-Identifier: Apache-2.0
#include "harness/pairwise.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

using Levels = std::vector<std::size_t>;
using Legal = std::function<bool(std::span<const std::size_t>)>;
using Pairs = std::set<std::array<std::size_t, 4>>;

void add_pairs(std::span<const std::size_t> row, Pairs& pairs) {
  for (std::size_t f = 0; f < row.size(); ++f) {
    for (std::size_t g = f + 1; g < row.size(); ++g) pairs.insert({f, row[f], g, row[g]});
  }
}

Pairs all_legal_pairs(const Levels& levels, const Legal& legal) {
  Pairs pairs;
  Combination row(levels.size(), 0);
  for (std::size_t f = 0; f < row.size();) {
    if (legal(row)) add_pairs(row, pairs);
    for (f = 0; f < row.size() && ++row[f] == levels[f]; ++f) row[f] = 0;
  }
  return pairs;
}

struct Space {
  const char* name;
  Levels levels;
  Legal legal;
};

std::vector<Space> spaces() {
  const auto product = [](std::span<const std::size_t> r) { return (r[0] + 1) * (r[1] + 1) * (r[2] + 1) <= 8; };
  return {
      {"free", {3, 4, 2, 5}, [](auto) { return true; }},
      {"many of two", Levels(12, 2), [](auto) { return true; }},
      {"one level each", {1, 1, 1}, [](auto) { return true; }},
      {"product of axes", {8, 5, 6, 3}, product},
      // Like a list of layers that fits one number of stages, and an order that needs two axes.
      {"values that need others",
       {8, 5, 6, 6, 4, 2},
       [&](auto r) {
         const int above_one = (r[0] > 0) + (r[1] > 0) + (r[2] > 0);
         return product(r) && (r[3] == 0 || above_one >= 2) && (r[4] == 0 || r[1] == r[4]) && (r[5] == 0 || r[1] > 0);
       }},
      {"a single combination",
       {4, 4, 4, 4, 4},
       [](auto r) { return std::ranges::all_of(r, [](auto x) { return x == 2; }); }},
      {"a diagonal", {5, 5, 5}, [](auto r) { return r[0] == r[1] && r[1] == r[2]; }},
  };
}

TEST(Pairwise, CoversWhatBruteForceFindsLegalAndNothingElse) {
  for (const auto& [name, levels, legal] : spaces()) {
    SCOPED_TRACE(name);
    const auto array = covering_array(levels, legal, 1);
    Pairs covered;
    for (const auto& row : array.rows) {
      ASSERT_EQ(row.size(), levels.size());
      for (std::size_t f = 0; f < row.size(); ++f) ASSERT_LT(row[f], levels[f]);
      EXPECT_TRUE(legal(row));
      const auto before = covered.size();
      add_pairs(row, covered);
      EXPECT_GT(covered.size(), before) << "a row that adds nothing";
    }
    EXPECT_EQ(covered, all_legal_pairs(levels, legal));
    EXPECT_EQ(array.covered, std::ssize(covered));
    EXPECT_EQ(array.legal, std::ssize(covered));
  }
}

/// At least the product of the two largest factors; the greedy way needs at most half as many again in these spaces.
TEST(Pairwise, IsSmall) {
  const auto yes = [](auto) { return true; };
  EXPECT_LE(covering_array(Levels{3, 4, 2, 5}, yes, 1).rows.size(), 26u);
  EXPECT_LE(covering_array(Levels(12, 2), yes, 1).rows.size(), 10u);
  EXPECT_LE(covering_array(Levels(10, 4), yes, 1).rows.size(), 34u);
}

TEST(Pairwise, IsAFunctionOfItsArguments) {
  const auto space = spaces()[4];
  const auto rows = [&](std::uint64_t seed) { return covering_array(space.levels, space.legal, seed).rows; };
  EXPECT_EQ(rows(1), rows(1));
  EXPECT_NE(rows(1), rows(2));
}

TEST(Pairwise, OneFactorNoFactorAndNothingLegal) {
  const auto odd = covering_array(
      Levels{5}, [](auto r) { return r[0] % 2 == 1; }, 1);
  EXPECT_EQ(odd.rows.size(), 2u);
  EXPECT_EQ(odd.covered, 2);
  EXPECT_EQ(odd.legal, 2);
  EXPECT_EQ(covering_array(
                {}, [](auto) { return true; }, 1)
                .rows,
            std::vector<Combination>{{}});
  const auto none = covering_array(
      Levels{3, 3}, [](auto) { return false; }, 1);
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(none.legal, 0);
}

}  // namespace
}  // namespace shardproof::harness
