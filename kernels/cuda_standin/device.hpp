// SPDX-License-Identifier: Apache-2.0
// The part of CUDA's device vocabulary that this project's kernels use, for kernels that run on the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda_standin/types.hpp"

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
// A block runs on one thread of the host, and has it for itself. As on a device, contents are left from earlier blocks.
#define __shared__ static thread_local

inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};
inline constexpr int warpSize = 32;

namespace shardproof::cuda_standin::device {

void sync_threads(const Site& site);
void sync_warp(const Site& site, unsigned mask);
unsigned ballot(const Site& site, unsigned mask, bool predicate);
/// `from`: a lane of the warp.
std::uint64_t shuffle(const Site& site, unsigned mask, std::uint64_t value, int from);
int lane();

template <class T>
T shuffle(const Site& site, unsigned mask, T value, int from) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA moves words of 4 and 8 bytes");
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = shuffle(site, mask, word, from);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// A lane outside of this lane's section of `width` lanes gives the lane's own value.
inline int within(int from, int width) { return (from ^ lane()) < width && from >= 0 ? from : lane(); }

}  // namespace shardproof::cuda_standin::device

// The file and line of a call are where threads meet: a compiler may have made several calls of one.
#define SHARDPROOF_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(SHARDPROOF_SITE) {
  shardproof::cuda_standin::device::sync_threads({"__syncthreads", file, line});
}
inline void __syncwarp(unsigned mask = ~0u, SHARDPROOF_SITE) {
  shardproof::cuda_standin::device::sync_warp({"__syncwarp", file, line}, mask);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SHARDPROOF_SITE) {
  return shardproof::cuda_standin::device::ballot({"__ballot_sync", file, line}, mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate, SHARDPROOF_SITE) {
  return shardproof::cuda_standin::device::ballot({"__any_sync", file, line}, mask, predicate != 0) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, SHARDPROOF_SITE) {
  return shardproof::cuda_standin::device::ballot({"__all_sync", file, line}, mask, predicate == 0) == 0 ? 1 : 0;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = warpSize, SHARDPROOF_SITE) {
  namespace device = shardproof::cuda_standin::device;
  const int first = device::lane() & ~(width - 1);
  return device::shuffle({"__shfl_sync", file, line}, mask, value, first + (from & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize, SHARDPROOF_SITE) {
  namespace device = shardproof::cuda_standin::device;
  // Into a later section a lane does not see; into an earlier one it does.
  const int from = device::lane() ^ lanes;
  const bool later = (from & ~(width - 1)) > (device::lane() & ~(width - 1));
  return device::shuffle({"__shfl_xor_sync", file, line}, mask, value, later ? device::lane() : from);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = warpSize, SHARDPROOF_SITE) {
  namespace device = shardproof::cuda_standin::device;
  const int from = device::within(device::lane() - static_cast<int>(lanes), width);
  return device::shuffle({"__shfl_up_sync", file, line}, mask, value, from);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = warpSize, SHARDPROOF_SITE) {
  namespace device = shardproof::cuda_standin::device;
  const int from = device::within(device::lane() + static_cast<int>(lanes), width);
  return device::shuffle({"__shfl_down_sync", file, line}, mask, value, from);
}

#undef SHARDPROOF_SITE

// Atomics order nothing else, as on a device.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> word(*address);
  T seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  return seen;
}
