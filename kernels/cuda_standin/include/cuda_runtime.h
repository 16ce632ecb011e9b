// SPDX-License-Identifier: Apache-2.0
// The stand-in for the toolkit's header of this name: what this project uses of the CUDA runtime, for g++ and clang++
// on a machine without the toolkit. Names, types and numbers are CUDA's.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "kernels/cuda_standin/device.hpp"

using std::size_t;

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801
};
using cudaError_t = cudaError;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

#include "kernels/cuda_standin/include/cudart_calls.h"

/// Attributes of launches are not modelled: numAttrs is 0.
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  struct cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace shardproof::cuda_standin {
cudaError_t launch(const cudaLaunchConfig_t& config, std::function<void()> kernel);
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  std::tuple<Parameters...> copied(std::forward<Arguments>(arguments)...);
  return shardproof::cuda_standin::launch(*config,
                                          [kernel, copied = std::move(copied)] { std::apply(kernel, copied); });
}
