// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/cuda_standin/runtime.hpp"
#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin {
namespace {

/// Two streams and two arrays of 100 floats; options are those of the environment again afterwards.
class Cudart : public ::testing::Test {
 protected:
  static constexpr std::size_t n = 100, bytes = n * sizeof(float);

  void SetUp() override {
    for (auto* s : {&stream, &other}) ASSERT_EQ(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), cudaSuccess);
    for (auto* a : {&array, &second}) ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(a), bytes), cudaSuccess);
  }
  void TearDown() override {
    Runtime::get().forget_failure();
    for (auto* s : {stream, other}) EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
    for (auto* a : {array, second}) EXPECT_EQ(cudaFree(a), cudaSuccess);
    Runtime::get().set_options(options);
    cudaGetLastError();
  }
  /// New streams, whose work waits until it is waited for.
  void be_late() {
    Runtime::get().set_options({options.order, true});
    for (auto* s : {&stream, &other}) {
      ASSERT_EQ(cudaStreamDestroy(*s), cudaSuccess);
      ASSERT_EQ(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), cudaSuccess);
    }
  }
  std::vector<float> fetch(const float* from) {
    std::vector<float> values(n);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), from, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return values;
  }

  const Options options = Runtime::get().options();
  cudaStream_t stream = nullptr, other = nullptr;
  float *array = nullptr, *second = nullptr;
};

cudaLaunchConfig_t config(cudaStream_t stream, unsigned blocks, unsigned threads) {
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(blocks);
  c.blockDim = dim3(threads);
  c.stream = stream;
  return c;
}

__global__ void fill(float* x, unsigned count, float value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = value + static_cast<float>(i);
}

__global__ void diverge(int) {
  if (threadIdx.x == 0) __syncthreads();
}

TEST_F(Cudart, FreshMemoryIsNaN) {
  for (const float v : fetch(array)) ASSERT_TRUE(std::isnan(v));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array) % 256, 0u);
}

TEST_F(Cudart, AStreamKeepsItsOrder) {
  std::vector<float> from(n, 3.0f);
  ASSERT_EQ(cudaMemcpyAsync(array, from.data(), bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(second, array, bytes, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(array, 0, bytes, stream), cudaSuccess);
  EXPECT_EQ(fetch(second), from);
  EXPECT_EQ(fetch(array), std::vector<float>(n, 0.0f));
}

TEST_F(Cudart, KernelsTakeTheirArguments) {
  const auto c = config(stream, 4, 32);
  ASSERT_EQ(cudaLaunchKernelEx(&c, fill, array, 90u, 0.5), cudaSuccess);
  const auto values = fetch(array);
  for (std::size_t i = 0; i < 90; ++i) ASSERT_EQ(values[i], 0.5f + static_cast<float>(i));
  EXPECT_TRUE(std::isnan(values[90]));
}

TEST_F(Cudart, LateStreamsDoNothingBeforeTheyMust) {
  be_late();
  std::vector<float> to(n, -1.0f);
  ASSERT_EQ(cudaMemsetAsync(array, 0, bytes, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to.data(), array, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  if (sanitizer::kind() != sanitizer::Kind::thread) {  // which would rightly call it a race
    EXPECT_EQ(to[0], -1.0f);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(to[0], 0.0f);
}

TEST_F(Cudart, EventsOrderStreams) {
  for (const bool late : {false, true}) {
    if (late) be_late();
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    // Never recorded, it holds nobody up.
    ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    const auto c = config(stream, 4, 32);
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(cudaLaunchKernelEx(&c, fill, array, 100u, static_cast<float>(round)), cudaSuccess);
      ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
      float first = -1;
      ASSERT_EQ(cudaMemcpyAsync(&first, array, sizeof first, cudaMemcpyDeviceToHost, other), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
      ASSERT_EQ(first, static_cast<float>(round));
    }
    // What waits keeps what it needs.
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  }
}

TEST_F(Cudart, WrongCallsAreRefused) {
  std::vector<float> host(2 * n);
  const auto copy = [&](void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
    const auto error = cudaMemcpyAsync(to, from, size, kind, stream);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return error;
  };
  EXPECT_EQ(copy(array, host.data(), bytes + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(array + 1, host.data(), bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host.data(), array - 1, bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host.data(), host.data() + n, bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(array, second, bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(array, second, bytes, cudaMemcpyDefault), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(copy(host.data(), host.data() + n, bytes, cudaMemcpyHostToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(copy(array, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(array, 0, bytes + 1, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(array + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  // The default stream, and one that is gone.
  EXPECT_EQ(cudaMemsetAsync(array, 0, bytes, nullptr), cudaErrorInvalidResourceHandle);
  cudaStream_t gone = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(fetch(array).size(), n);
}

TEST_F(Cudart, LaunchesPastTheLimitsAreRefused) {
  const auto launch = [&](dim3 grid, dim3 block, std::size_t shared = 0) {
    auto c = config(stream, 1, 1);
    c.gridDim = grid, c.blockDim = block, c.dynamicSmemBytes = shared;
    return cudaLaunchKernelEx(&c, fill, array, 0u, 0.0f);
  };
  for (const auto& block : {dim3(0), dim3(1025), dim3(64, 17), dim3(1, 1, 65), dim3(65536, 65536)}) {
    EXPECT_EQ(launch(dim3(1), block), cudaErrorInvalidConfiguration);
  }
  for (const auto& grid : {dim3(0), dim3(1, 65536), dim3(1, 1, 65536)}) {
    EXPECT_EQ(launch(grid, dim3(1)), cudaErrorInvalidConfiguration);
  }
  EXPECT_EQ(launch(dim3(1), dim3(1), 4), cudaErrorNotSupported);
  EXPECT_EQ(launch(dim3(2), dim3(32, 32)), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST_F(Cudart, AThreadsLastErrorIsItsOwn) {
  EXPECT_EQ(cudaFree(array + 1), cudaErrorInvalidValue);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(Cudart, AKernelsFaultSticks) {
  const auto c = config(stream, 1, 2);
  cudaLaunchKernelEx(&c, diverge, 0);  // which may know already
  // Skipped, as all that follows.
  cudaMemsetAsync(array, 0, bytes, stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  const std::string why = cudaGetErrorString(cudaErrorLaunchFailure);
  EXPECT_NE(why.find("block (0,0,0)"), std::string::npos) << why;
  EXPECT_NE(why.find("__syncthreads (cudart_test.cpp:"), std::string::npos) << why;
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 8), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaLaunchKernelEx(&c, fill, array, 1u, 0.0f), cudaErrorLaunchFailure);
  Runtime::get().forget_failure();
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_TRUE(std::isnan(fetch(array)[0]));
}

TEST(CudartOptions, AreReadOrRefused) {
  EXPECT_EQ(parse_options("").order.kind, ThreadOrder::Kind::forward);
  EXPECT_FALSE(parse_options("reverse").late);
  const auto options = parse_options("shuffled=12,late");
  EXPECT_EQ(options.order.kind, ThreadOrder::Kind::shuffled);
  EXPECT_EQ(options.order.seed, 12u);
  EXPECT_TRUE(options.late);
  for (const char* const text : {"backward", "shuffled=", "shuffled=x", "shuffled=1x", "late,,"}) {
    EXPECT_THROW(parse_options(text), BadInput) << text;
  }
}

}  // namespace
}  // namespace shardproof::cuda_standin
