// SPDX-License-Identifier: Apache-2.0
// Seeded faults: each is reported, by its values, by the stand-in or by the sanitizer that the build has.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/cuda_standin/grid.hpp"
#include "kernels/cuda_standin/runtime.hpp"
#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin {
namespace {

using sanitizer::Kind;

constexpr ThreadOrder orders[] = {
    {ThreadOrder::Kind::forward}, {ThreadOrder::Kind::reverse}, {ThreadOrder::Kind::shuffled, 7}};

/// A process of its own in which f() runs ends with the sanitizer's code and words.
void expect_report(const std::function<void()>& f, const char* words) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((f(), std::exit(0)), [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) != 0; }, words);
}

template <bool correct>
__global__ void reverse(const int* in, int* out) {
  __shared__ int memory[64];
  memory[threadIdx.x] = in[threadIdx.x];
  if constexpr (correct) __syncthreads();
  out[threadIdx.x] = memory[63 - threadIdx.x];
}

template <bool correct>
int wrong_after_reverse(const ThreadOrder& order) {
  int wrong = 0;
  // The second block finds the first one's values in shared memory.
  std::vector<int> in(64), out(64);
  for (int block = 0; block < 2; ++block) {
    for (std::size_t i = 0; i < 64; ++i) in[i] = 100 * block + static_cast<int>(i) + 1;
    run_grid(dim3(1), dim3(64), order, [&] { reverse<correct>(in.data(), out.data()); });
    for (std::size_t i = 0; i < 64; ++i) wrong += out[i] != in[63 - i];
  }
  return wrong;
}

TEST(Seeded, MissingBarrier) {
  for (const auto& order : orders) {
    EXPECT_EQ(wrong_after_reverse<true>(order), 0);
    if (sanitizer::kind() == Kind::thread) {
      expect_report([&] { wrong_after_reverse<false>(order); }, "data race");
    } else {
      EXPECT_GE(wrong_after_reverse<false>(order), 64);  // half of each block's threads come too early
    }
  }
}

/// The second barrier keeps a fast thread from writing what a slow one has not read.
template <bool correct>
__global__ void rounds(int* out) {
  __shared__ int memory[64];
  for (int round = 0; round < 2; ++round) {
    memory[threadIdx.x] = round;
    __syncthreads();
    if (threadIdx.x == 63) out[round] = memory[0];
    if constexpr (correct) __syncthreads();
  }
}

TEST(Seeded, MissingBarrierThatNoValueShows) {
  // The last thread to arrive is the first to go on: in this order thread 63, which reads in time whatever is missing.
  const auto wrong = [](bool correct) {
    std::vector<int> out(2, -1);
    run_grid(dim3(1), dim3(64), orders[0], [&] { correct ? rounds<true>(out.data()) : rounds<false>(out.data()); });
    return out != std::vector<int>{0, 1};
  };
  EXPECT_FALSE(wrong(true));
  if (sanitizer::kind() == Kind::thread) {
    expect_report([&] { wrong(false); }, "data race");
  } else {
    EXPECT_FALSE(wrong(false));  // what it takes the thread sanitizer to see
  }
}

__global__ void twice(const float* from, float* to, unsigned n) {
  if (threadIdx.x < n) to[threadIdx.x] = 2 * from[threadIdx.x];
}

enum class Fault { none, no_wait, no_synchronize, late_source, write_overrun, read_overrun };

/// Host to device on one stream, a kernel on another, and back: what the host has read, of 10 elements.
std::vector<float> there_and_back(Fault fault) {
  Runtime::get().set_options({{}, true});
  cudaStream_t copies = nullptr, kernels = nullptr;
  cudaEvent_t event = nullptr;
  float *from = nullptr, *to = nullptr;
  constexpr std::size_t n = 10, bytes = n * sizeof(float);
  std::vector<float> host(n, 4.0f), result(n, -1.0f);
  EXPECT_EQ(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&from), bytes), cudaSuccess);
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&to), bytes), cudaSuccess);

  EXPECT_EQ(cudaMemcpyAsync(from, host.data(), bytes, cudaMemcpyHostToDevice, copies), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, copies), cudaSuccess);
  if (fault == Fault::late_source) host.assign(n, 5.0f);
  if (fault != Fault::no_wait) cudaStreamWaitEvent(kernels, event, 0);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1), config.blockDim = dim3(32), config.stream = kernels;
  const unsigned count = n + (fault == Fault::write_overrun ? 1 : 0);
  const float* const source = from + (fault == Fault::read_overrun ? 1 : 0);
  EXPECT_EQ(cudaLaunchKernelEx(&config, twice, source, to, count), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(result.data(), to, bytes, cudaMemcpyDeviceToHost, kernels), cudaSuccess);
  if (fault != Fault::no_synchronize) cudaStreamSynchronize(kernels);
  // One by one: of the vector's own copy (memmove) g++ 12's thread sanitizer reports nothing.
  std::vector<float> seen;
  for (const float v : result) seen.push_back(v);

  cudaStreamDestroy(kernels);
  cudaStreamDestroy(copies);
  cudaEventDestroy(event);
  for (auto* memory : {from, to}) cudaFree(memory);
  return seen;
}

void expect_streams_reported(Fault fault, const std::function<bool(const std::vector<float>&)>& is_wrong) {
  EXPECT_EQ(there_and_back(Fault::none), std::vector<float>(10, 8.0f));
  if (sanitizer::kind() == Kind::thread) {
    expect_report([=] { there_and_back(fault); }, "data race");
  } else {
    EXPECT_TRUE(is_wrong(there_and_back(fault)));
  }
}

TEST(Seeded, MissingStreamWait) {
  expect_streams_reported(Fault::no_wait, [](const auto& seen) { return std::isnan(seen[0]) && std::isnan(seen[9]); });
}

TEST(Seeded, MissingSynchronize) {
  expect_streams_reported(Fault::no_synchronize,
                          [](const auto& seen) { return seen == std::vector<float>(10, -1.0f); });
}

TEST(Seeded, SourceOfACopyWrittenTooEarly) {
  expect_streams_reported(Fault::late_source, [](const auto& seen) { return seen == std::vector<float>(10, 10.0f); });
}

TEST(Seeded, WriteOverrun) {
  if (sanitizer::kind() == Kind::address) {
    expect_report([] { there_and_back(Fault::write_overrun); }, "heap-buffer-overflow");
    return;
  }
  there_and_back(Fault::write_overrun);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorIllegalAddress)),
            "a kernel has written past the end of an allocation of 40 bytes");
  Runtime::get().forget_failure();
  cudaGetLastError();
}

TEST(Seeded, ReadOverrun) {
  if (sanitizer::kind() == Kind::address) {
    expect_report([] { there_and_back(Fault::read_overrun); }, "heap-buffer-overflow");
  } else {
    EXPECT_NE(there_and_back(Fault::read_overrun)[9], 8.0f);
  }
}

}  // namespace
}  // namespace shardproof::cuda_standin
