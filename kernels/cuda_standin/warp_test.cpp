// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/cuda_standin/grid.hpp"

namespace shardproof::cuda_standin {
namespace {

constexpr ThreadOrder orders[] = {
    {ThreadOrder::Kind::forward}, {ThreadOrder::Kind::reverse}, {ThreadOrder::Kind::shuffled, 7}};

/// What the lanes of the second warp get from f(lane), in each order; they must agree.
template <class F>
std::array<int, 32> lanes(F f) {
  std::array<int, 32> first{}, result{};
  for (const auto& order : orders) {
    run_grid(dim3(1), dim3(64), order, [&] {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const int value = f(lane);
      if (threadIdx.x >= 32) result[static_cast<std::size_t>(lane)] = value;
    });
    if (order.kind == ThreadOrder::Kind::forward) first = result;
    EXPECT_EQ(result, first);
  }
  return result;
}

template <class F>
void expect_lanes(const std::array<int, 32>& found, F expected) {
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(found[static_cast<std::size_t>(lane)], expected(lane)) << "lane " << lane;
}

/// Every order's fault has each of the parts.
template <class F>
void expect_fault(unsigned threads, const std::vector<std::string>& parts, F kernel) {
  for (const auto& order : orders) {
    std::string found;
    try {
      run_grid(dim3(1), dim3(threads), order, kernel);
    } catch (const KernelFault& fault) {
      found = fault.what();
    }
    for (const auto& part : parts) EXPECT_NE(found.find(part), std::string::npos) << "'" << found << "': no " << part;
  }
}

TEST(Warp, ShufflesMoveValuesBetweenLanes) {
  expect_lanes(lanes([](int l) { return __shfl_sync(~0u, 100 + l, 7); }), [](int) { return 107; });
  expect_lanes(lanes([](int l) { return __shfl_sync(~0u, 100 + l, l * 5); }), [](int l) { return 100 + l * 5 % 32; });
  expect_lanes(lanes([](int l) { return __shfl_xor_sync(~0u, 100 + l, 5); }), [](int l) { return 100 + (l ^ 5); });
  expect_lanes(lanes([](int l) { return __shfl_up_sync(~0u, 100 + l, 3); }),
               [](int l) { return 100 + (l < 3 ? l : l - 3); });
  expect_lanes(lanes([](int l) { return __shfl_down_sync(~0u, 100 + l, 3); }),
               [](int l) { return 100 + (l > 28 ? l : l + 3); });
}

// "If width is less than warpSize then each subsection of the warp behaves as a separate entity with a starting logical
// lane ID of 0."
TEST(Warp, ShufflesKeepToSectionsOfAWidth) {
  expect_lanes(lanes([](int l) { return __shfl_sync(~0u, 100 + l, 10, 8); }),
               [](int l) { return 100 + l / 8 * 8 + 2; });
  expect_lanes(lanes([](int l) { return __shfl_up_sync(~0u, 100 + l, 3, 8); }),
               [](int l) { return 100 + (l % 8 < 3 ? l : l - 3); });
  expect_lanes(lanes([](int l) { return __shfl_down_sync(~0u, 100 + l, 3, 8); }),
               [](int l) { return 100 + (l % 8 > 4 ? l : l + 3); });
  // "each group of width consecutive threads are able to access elements from earlier groups of threads, however if
  // they attempt to access elements from later groups of threads their own value of var will be returned."
  expect_lanes(lanes([](int l) { return __shfl_xor_sync(~0u, 100 + l, 8, 8); }),
               [](int l) { return 100 + (l % 16 < 8 ? l : l ^ 8); });
}

TEST(Warp, ShufflesMoveWordsOfEightBytes) {
  expect_lanes(lanes([](int l) {
                 const double d = __shfl_xor_sync(~0u, 0.5 + l, 1);
                 const auto i = __shfl_sync(~0u, std::int64_t{l} << 40, 9);
                 return static_cast<int>(2 * d) + static_cast<int>(i >> 40);
               }),
               [](int l) { return 2 * (l ^ 1) + 1 + 9; });
}

TEST(Warp, BallotsAskTheLanesOfTheMask) {
  expect_lanes(lanes([](int l) { return static_cast<int>(__ballot_sync(~0u, l % 3 == 0)); }),
               [](int) { return 0x49249249; });
  expect_lanes(lanes([](int l) { return __any_sync(~0u, l == 31) + 2 * __any_sync(~0u, l == 32); }),
               [](int) { return 1; });
  expect_lanes(lanes([](int l) { return __all_sync(~0u, l < 31) + 2 * __all_sync(~0u, l < 32); }),
               [](int) { return 2; });
  expect_lanes(lanes([](int l) {
                 if (l >= 4) return 0;
                 return static_cast<int>(__ballot_sync(0xfu, l != 2));
               }),
               [](int l) { return l < 4 ? 11 : 0; });
}

TEST(Warp, DivergedLanesMeetApart) {
  expect_lanes(lanes([](int l) {
                 int value = l;
                 if (l % 2 == 0) {
                   for (int k = 0; k < 3; ++k) value = __shfl_xor_sync(0x55555555u, value, 2) + 1;
                 } else {
                   value = __shfl_sync(0xaaaaaaaau, value, 1);
                 }
                 __syncwarp();
                 return __shfl_sync(~0u, value, l);
               }),
               [](int l) { return l % 2 == 0 ? (l ^ 2) + 3 : 1; });
}

TEST(Warp, SyncwarpOrdersSharedMemory) {
  expect_lanes(lanes([](int l) {
                 __shared__ int memory[64];
                 memory[threadIdx.x] = l;
                 __syncwarp();
                 const int value = memory[threadIdx.x ^ 1u];
                 __syncwarp();
                 return value;
               }),
               [](int l) { return l ^ 1; });
}

TEST(Warp, TheLastWarpMayHaveFewerLanes) {
  int sum = 0;
  run_grid(dim3(1), dim3(40), orders[2], [&] {
    const int count = std::popcount(__ballot_sync(~0u, 1));
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, count);
  });
  EXPECT_EQ(sum, 40);
  expect_fault(40, {"thread (3", "reads lane 9, which mask 0x000000ff does not name"}, [] {
    if (threadIdx.x >= 32) __shfl_sync(~0u, 1, 9);
  });
}

TEST(Warp, WrongMasksAreNamed) {
  expect_fault(
      32, {"thread (5,0,0) of block (0,0,0) is at __shfl_sync (warp_test.cpp:", "mask 0x0000000f does not name it"},
      [] {
        if (threadIdx.x == 5) __shfl_sync(0xfu, 1, 0);
      });
  expect_fault(32, {"reads lane 20, which mask 0x0000ffff does not name"}, [] {
    if (threadIdx.x < 16) __shfl_sync(0xffffu, 1, 20);
  });
  expect_fault(32, {"with mask", "0xffff0001", "0xffffffff", "but lanes that it names wait for it"},
               [] { __shfl_sync(threadIdx.x < 16 ? ~0u : 0xffff0001u, 1, 0); });
  expect_fault(32, {"left the kernel", "__syncwarp (warp_test.cpp:"}, [] {
    if (threadIdx.x != 8) __syncwarp();
  });
}

TEST(Warp, LanesOfOneMaskMeetInOneCall) {
  expect_fault(32, {"is at __", "but lanes that it names wait for it at __"}, [] {
    if (threadIdx.x < 9) {
      __ballot_sync(~0u, 1);
    } else {
      __shfl_sync(~0u, 1, 0);
    }
  });
}

}  // namespace
}  // namespace shardproof::cuda_standin
