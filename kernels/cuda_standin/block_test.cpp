// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/cuda_standin/grid.hpp"

namespace shardproof::cuda_standin {
namespace {

constexpr ThreadOrder orders[] = {
    {ThreadOrder::Kind::forward}, {ThreadOrder::Kind::reverse}, {ThreadOrder::Kind::shuffled, 7}};

/// What a KernelFault says, or nothing.
template <class F>
std::string fault_of(const dim3& block, const ThreadOrder& order, F kernel) {
  try {
    run_grid(dim3(1), block, order, kernel);
  } catch (const KernelFault& fault) {
    return fault.what();
  }
  return "";
}

/// Each of the parts is in what the fault says, in every order of threads.
template <class F>
void expect_fault(const dim3& block, const std::vector<std::string>& parts, F kernel) {
  for (const auto& order : orders) {
    const std::string found = fault_of(block, order, kernel);
    for (const auto& part : parts) EXPECT_NE(found.find(part), std::string::npos) << "'" << found << "': no " << part;
  }
}

TEST(Block, EveryThreadOfEveryBlockRunsOnce) {
  for (const auto& order : orders) {
    std::vector<int> calls(12 * 30);
    run_grid(dim3(3, 2, 2), dim3(5, 3, 2), order, [&] {
      EXPECT_EQ(std::tuple(gridDim.x, gridDim.y, gridDim.z), std::tuple(3u, 2u, 2u));
      EXPECT_EQ(std::tuple(blockDim.x, blockDim.y, blockDim.z), std::tuple(5u, 3u, 2u));
      const unsigned block = blockIdx.x + 3 * (blockIdx.y + 2 * blockIdx.z);
      const unsigned thread = threadIdx.x + 5 * (threadIdx.y + 3 * threadIdx.z);
      ++calls.at(30 * block + thread);
    });
    EXPECT_EQ(calls, std::vector<int>(12 * 30, 1));
  }
}

// Threads of a kernel share what only barriers and atomics order: so do these tests' own.
std::vector<unsigned> turns(const ThreadOrder& order) {
  std::vector<unsigned> ids(16);
  unsigned next = 0;
  run_grid(dim3(2), dim3(8), order, [&] { ids.at(atomicAdd(&next, 1)) = blockIdx.x * 8 + threadIdx.x; });
  return ids;
}

TEST(Block, OrdersAreAsTheySay) {
  std::vector<unsigned> ids(16);
  std::iota(ids.begin(), ids.end(), 0u);
  EXPECT_EQ(turns(orders[0]), ids);
  const auto shuffled = turns(orders[2]);
  EXPECT_NE(shuffled, ids);
  EXPECT_EQ(shuffled, turns(orders[2]));
  EXPECT_NE(shuffled, turns({ThreadOrder::Kind::shuffled, 8}));
  auto sorted = shuffled;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, ids);
  std::reverse(ids.begin(), ids.end());
  EXPECT_EQ(turns(orders[1]), ids);
}

__global__ void reverse(const int* in, int* out) {
  __shared__ int memory[100];
  const unsigned t = threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    memory[t] = in[t] + round;
    __syncthreads();
    out[t] = memory[blockDim.x - 1 - t];
    __syncthreads();
  }
}

TEST(Block, BarriersOrderSharedMemory) {
  std::vector<int> in(100), out(100);
  std::iota(in.begin(), in.end(), 5);
  for (const auto& order : orders) {
    std::fill(out.begin(), out.end(), -1);
    run_grid(dim3(4), dim3(100), order, [&] { reverse(in.data(), out.data()); });
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(out[i], in[99 - i] + 2) << i;
  }
}

TEST(Block, BarriersInDivergentCodeAreNamed) {
  expect_fault(dim3(64), {"of block (0,0,0) is at __syncthreads (block_test.cpp:", "but others wait at __syncthreads"},
               [] {
                 if (threadIdx.x < 3) {
                   __syncthreads();
                 } else {
                   __syncthreads();
                 }
               });
}

TEST(Block, ThreadsThatLeaveBeforeABarrierAreNamed) {
  expect_fault(dim3(40), {"left the kernel", "__syncthreads (block_test.cpp:"}, [] {
    if (threadIdx.x == 33) return;
    __syncthreads();
  });
  // In this order thread 33 has left before anyone is at the barrier.
  EXPECT_EQ(fault_of(dim3(40), orders[1],
                     [] {
                       if (threadIdx.x == 39) return;
                       __syncthreads();
                     })
                .substr(0, 35),
            "thread (38,0,0) of block (0,0,0) is");
}

TEST(Block, WaitsThatNobodyEndsAreNamed) {
  expect_fault(dim3(32), {"no thread can go on", "__syncthreads (block_test.cpp:", "__shfl_sync (block_test.cpp:"}, [] {
    if (threadIdx.x < 5) {
      __syncthreads();
    } else {
      __shfl_sync(~0u, 1, 0);
    }
  });
}

TEST(Block, AnotherBlockIsNamed) {
  std::string found;
  try {
    run_grid(dim3(1, 3), dim3(2), orders[0], [] {
      if (blockIdx.y != 2 || threadIdx.x == 0) __syncthreads();
    });
  } catch (const KernelFault& fault) {
    found = fault.what();
  }
  EXPECT_NE(found.find("thread (1,0,0) of block (0,2,0) has left"), std::string::npos) << found;
}

TEST(Block, WhatAKernelThrowsArrivesAndTheNextKernelRuns) {
  for (const auto& order : orders) {
    EXPECT_THROW(run_grid(dim3(2), dim3(50), order,
                          [] {
                            if (threadIdx.x == 20) throw std::out_of_range("element");
                            __syncthreads();
                          }),
                 std::out_of_range);
    int calls = 0;
    run_grid(dim3(2), dim3(50), order, [&] {
      __syncthreads();
      atomicAdd(&calls, 1);
    });
    EXPECT_EQ(calls, 100);
  }
}

TEST(Block, AtomicsCountEveryThread) {
  for (const auto& order : orders) {
    int sum = 0, bits = 0, last = -1, first = -1, greatest = -1;
    float real = 0;
    unsigned long long large = 0;
    run_grid(dim3(2), dim3(96), order, [&] {
      const int t = static_cast<int>(threadIdx.x);
      atomicAdd(&sum, t);
      atomicAdd(&real, 0.5f);
      atomicAdd(&large, 1ull << 32);
      atomicOr(&bits, 1 << t % 7);
      atomicMax(&greatest, t);
      atomicExch(&last, t);
      atomicCAS(&first, -1, t);
    });
    EXPECT_EQ(sum, 2 * 95 * 96 / 2);
    EXPECT_EQ(real, 96.0f);
    EXPECT_EQ(large, 192ull << 32);
    EXPECT_EQ(bits, 127);
    EXPECT_EQ(greatest, 95);
    EXPECT_NE(first, -1);
    EXPECT_NE(last, -1);
  }
}

TEST(Block, DeviceCodeOutsideOfAKernelIsRefused) { EXPECT_THROW(__syncthreads(), InternalError); }

}  // namespace
}  // namespace shardproof::cuda_standin
