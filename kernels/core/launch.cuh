// SPDX-License-Identifier: Apache-2.0
// How a kernel is started, in a text that nvcc and the stand-in both compile.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/core/cuda.hpp"

namespace shardproof::cuda {

/// Throws DeviceError unless it is cudaSuccess.
void check(const char* call, cudaError_t error);

/// `blocks` blocks, or as many as a grid may have on every device, whose threads then take more than one share each;
/// none for no work.
template <class... Parameters>
void launch(Stream& stream, std::int64_t blocks, unsigned threads, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (blocks == 0) return;
  constexpr std::int64_t most_blocks = 65535;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min(blocks, most_blocks)));
  config.blockDim = dim3(threads);
  config.stream = stream.handle();
  check("cudaLaunchKernelEx", cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace shardproof::cuda
