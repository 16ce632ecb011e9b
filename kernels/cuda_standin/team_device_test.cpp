// SPDX-License-Identifier: Apache-2.0
// The device's team on simulated threads gives the host's bits.
#include "kernels/core/team_device.cuh"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/testing/values.hpp"
#include "kernels/cuda_standin/grid.hpp"

namespace shardproof::cuda_standin {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 31, 32, 33, 65, 997, 2050};
constexpr ThreadOrder orders[] = {
    {ThreadOrder::Kind::forward}, {ThreadOrder::Kind::reverse}, {ThreadOrder::Kind::shuffled, 7}};

template <int W, class T>
void expect_host_bits() {
  for (const auto n : sizes) {
    std::vector<T> x;
    for (const auto v : testing::scattered(3, "fold", n)) x.push_back(static_cast<T>(v));
    const auto at = [p = x.data()](std::int64_t i) { return p[i]; };
    const T sum = HostTeam<W>{}.fold(n, T(0), at, Plus{}), top = HostTeam<W>{}.fold(n, T(-9), at, Greatest{});
    for (const auto& order : orders) {
      std::vector<T> sums(W), tops(W);
      run_grid(dim3(1), dim3(W), order, [&] {
        const DeviceTeam<W> team;
        sums[threadIdx.x] = team.fold(n, T(0), at, Plus{});
        tops[threadIdx.x] = team.fold(n, T(-9), at, Greatest{});
      });
      for (int k = 0; k < W; ++k) {
        ASSERT_EQ(testing::bits(sums[static_cast<std::size_t>(k)]), testing::bits(sum)) << W << "," << n << "," << k;
        ASSERT_EQ(testing::bits(tops[static_cast<std::size_t>(k)]), testing::bits(top)) << W << "," << n << "," << k;
      }
    }
  }
}

TEST(DeviceTeam, FoldsAsTheHostDoes) {
  expect_host_bits<32, float>();
  expect_host_bits<64, double>();
  expect_host_bits<128, float>();
  expect_host_bits<256, double>();
  expect_host_bits<512, float>();
}

/// One text that folds again and again, as rows do: no fold may write what a slow thread still reads of the last.
TEST(DeviceTeam, FoldsOneAfterTheOther) {
  constexpr int threads = 64, rounds = 5;
  for (const auto& order : orders) {
    std::vector<int> sums(threads * rounds);
    run_grid(dim3(1), dim3(threads), order, [&] {
      for (int round = 0; round < rounds; ++round) {
        const int sum = DeviceTeam<threads>{}.fold(
            100, 0, [=](std::int64_t i) { return static_cast<int>(i) * (round + 1); }, Plus{});
        sums[static_cast<std::size_t>(round) * threads + threadIdx.x] = sum;
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i], 4950 * (static_cast<int>(i) / threads + 1)) << "thread " << i % threads;
    }
  }
}

TEST(DeviceTeam, FoldsValuesOfAnySize) {
  const auto f = [](std::int64_t i) { return term(Fixed{i << 30}); };
  const auto expected = HostTeam<64>{}.fold(1001, FixedSum{}, f, Plus{}).raw;
  std::vector<int> right(64);
  run_grid(dim3(1), dim3(64), orders[2], [&] {
    const DeviceTeam<64> team;
    const bool sum = team.fold(1001, FixedSum{}, f, Plus{}).raw == expected;
    const bool any = team.fold(
        100, false, [](std::int64_t i) { return i == 77; }, AnyOf{});
    right[threadIdx.x] = sum && any ? 1 : 0;
  });
  EXPECT_EQ(right, std::vector<int>(64, 1));
}

TEST(DeviceTeam, EachVisitsEveryElementOnce) {
  for (const auto n : sizes) {
    std::vector<int> visits(static_cast<std::size_t>(n));
    run_grid(dim3(1), dim3(64), orders[1],
             [&] { DeviceTeam<64>{}.each(n, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; }); });
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1));
  }
}

}  // namespace
}  // namespace shardproof::cuda_standin
