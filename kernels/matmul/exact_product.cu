// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/team_device.cuh"
#include "kernels/matmul/exact_product_row.hpp"

namespace shardproof::matmul {

/// A block of 256 threads takes rows blockIdx.x, blockIdx.x + gridDim.x, ...
__global__ void __launch_bounds__(256) exact_product(ExactProductRow row, std::int64_t m) {
  for (std::int64_t i = blockIdx.x; i < m; i += gridDim.x) row(DeviceTeam<256>{}, i);
}

}  // namespace shardproof::matmul
