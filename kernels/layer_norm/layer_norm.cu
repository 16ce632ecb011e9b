// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/team_device.cuh"
#include "kernels/layer_norm/layer_norm_row.hpp"

namespace shardproof::layer_norm {

/// A block of row_lanes<S> threads takes rows blockIdx.x, blockIdx.x + gridDim.x, ...; *overflow becomes 1 if a row
/// says so.
template <class S, class Row>
__global__ void __launch_bounds__(row_lanes<S>) each_row(Row row, std::int64_t n, std::int32_t* overflow) {
  for (std::int64_t r = blockIdx.x; r < n; r += gridDim.x) {
    if (row(DeviceTeam<row_lanes<S>>{}, r) && threadIdx.x == 0) *overflow = 1;
  }
}

template __global__ void each_row<Fixed>(ForwardRow<Fixed>, std::int64_t, std::int32_t*);
template __global__ void each_row<double>(ForwardRow<double>, std::int64_t, std::int32_t*);
template __global__ void each_row<float>(ForwardRow<float>, std::int64_t, std::int32_t*);
template __global__ void each_row<Fixed>(BackwardRow<Fixed>, std::int64_t, std::int32_t*);
template __global__ void each_row<double>(BackwardRow<double>, std::int64_t, std::int32_t*);
template __global__ void each_row<float>(BackwardRow<float>, std::int64_t, std::int32_t*);

}  // namespace shardproof::layer_norm
