// SPDX-License-Identifier: Apache-2.0
// The team of kernels/core/team.hpp as one thread block of W threads. A warp (W = 32) needs no shared memory.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/core/team.hpp"

namespace shardproof {

template <int W>
struct DeviceTeam {
  static_assert(W >= 32 && W <= 1024 && (W & (W - 1)) == 0);

  template <class F>
  __device__ void each(std::int64_t n, F f) const {
    for (std::int64_t i = threadIdx.x; i < n; i += W) f(i);
  }

  /// All threads of the block must call it; all get the result.
  template <class T, class F, class Op>
  __device__ T fold(std::int64_t n, T zero, F f, Op op) const {
    T value = zero;
    for (std::int64_t i = threadIdx.x; i < n; i += W) value = op(value, f(i));
    value = tree<16>(value, op);
    if constexpr (W > 32) {
      constexpr int warps = W / 32;
      alignas(16) __shared__ unsigned char memory[warps * sizeof(T)];
      T* const part = reinterpret_cast<T*>(memory);
      __syncthreads();  // the last fold's results have been read
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
      __syncthreads();
      value = tree<warps / 2>(part[threadIdx.x % warps], op);
    }
    // Lane 0's operands stand in the host's order: an op that tells them apart (a NaN's) gives the host's result.
    return exchanged(value, [](std::uint32_t word) { return __shfl_sync(~0u, word, 0); });
  }

 private:
  template <int half, class T, class Op>
  static __device__ T tree(T value, Op op) {
    value = op(value, exchanged(value, [](std::uint32_t word) { return __shfl_xor_sync(~0u, word, half); }));
    if constexpr (half > 1) value = tree<half / 2>(value, op);
    return value;
  }

  /// A value of any size, each of its 32-bit words moved between lanes.
  template <class T, class Move>
  static __device__ T exchanged(T value, Move move) {
    constexpr int count = (sizeof(T) + 3) / 4;
    std::uint32_t words[count] = {};
    memcpy(words, &value, sizeof value);
#pragma unroll
    for (int k = 0; k < count; ++k) words[k] = move(words[k]);
    memcpy(&value, words, sizeof value);
    return value;
  }
};

}  // namespace shardproof
