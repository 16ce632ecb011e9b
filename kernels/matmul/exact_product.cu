// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/launch.cuh"
#include "kernels/core/team_device.cuh"
#include "kernels/matmul/matmul_cuda.hpp"

namespace shardproof::matmul {

namespace {

constexpr int threads = 256;

/// A block takes rows blockIdx.x, blockIdx.x + gridDim.x, ...
__global__ void __launch_bounds__(threads) exact_product(ExactProductRow row, std::int64_t m) {
  for (std::int64_t i = blockIdx.x; i < m; i += gridDim.x) row(DeviceTeam<threads>{}, i);
}

}  // namespace

void launch(cuda::Stream& stream, const ExactProductRow& row, std::int64_t m) {
  cuda::launch(stream, m, threads, exact_product, row, m);
}

}  // namespace shardproof::matmul
