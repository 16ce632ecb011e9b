// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/team.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 997, 1024, 1025, 4099};

/// What 32 threads do with xor shuffles: everyone takes their partner's value; thread 0 has the result.
template <class T, class Op>
T warp(std::array<T, 32> value, Op op) {
  for (unsigned offset = 16; offset > 0; offset /= 2) {
    const auto before = value;
    for (unsigned k = 0; k < 32; ++k) value[k] = op(before[k], before[k ^ offset]);
  }
  return value[0];
}

/// The definition: thread k folds elements k, k+W, ...; warps fold; the first warp folds the warps' results.
template <class T, class Op>
T literal_fold(std::size_t width, const std::vector<T>& x, T zero, Op op) {
  std::array<T, 32> warps;
  warps.fill(zero);
  for (std::size_t w = 0; w < width / 32; ++w) {
    std::array<T, 32> threads;
    threads.fill(zero);
    for (std::size_t k = 0; k < 32; ++k) {
      for (std::size_t i = w * 32 + k; i < x.size(); i += width) threads[k] = op(threads[k], x[i]);
    }
    warps[w] = warp(threads, op);
  }
  return width == 32 ? warps[0] : warp(warps, op);
}

template <int W, class T>
void expect_literal_order() {
  const HostTeam<W> team;
  for (const auto n : sizes) {
    std::vector<T> x;
    for (const auto v : testing::scattered(3, "fold", n)) x.push_back(static_cast<T>(v));
    const auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
    // Equal in every bit: sums of numbers of very different size show their order.
    EXPECT_EQ(team.fold(n, T(0), at, Plus()), literal_fold(W, x, T(0), Plus())) << "W " << W << ", n " << n;
    EXPECT_EQ(team.fold(n, T(-1e9), at, Greatest()), literal_fold(W, x, T(-1e9), Greatest()));
  }
}

TEST(Team, FoldHasTheOrderOfThreads) {
  expect_literal_order<32, float>();
  expect_literal_order<32, double>();
  expect_literal_order<64, float>();
  expect_literal_order<128, float>();
  expect_literal_order<256, double>();
  expect_literal_order<1024, float>();
}

TEST(Team, TheOrderIsVisible) {
  // Otherwise the test above would prove nothing.
  std::vector<float> x;
  for (const auto v : testing::scattered(3, "fold", 4099)) x.push_back(static_cast<float>(v));
  float forward = 0;
  for (const auto v : x) forward += v;
  EXPECT_NE(literal_fold(32, x, 0.0f, Plus()), literal_fold(64, x, 0.0f, Plus()));
  EXPECT_NE(literal_fold(32, x, 0.0f, Plus()), forward);
}

TEST(Team, FoldsFixedSums) {
  const HostTeam<64> team;
  const auto sum = team.fold(
      1001, FixedSum{}, [](std::int64_t i) { return term(Fixed{i}); }, Plus());
  EXPECT_TRUE(sum.raw == 1001 * 1000 / 2);
}

TEST(Team, EachVisitsEveryElementOnce) {
  for (const auto n : sizes) {
    std::vector<int> visits(static_cast<std::size_t>(n));
    HostTeam<64>().each(n, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1));
  }
}

}  // namespace
}  // namespace shardproof
