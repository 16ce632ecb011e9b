// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/launch.cuh"
#include "kernels/core/team_device.cuh"
#include "kernels/layer_norm/layer_norm_cuda.hpp"

namespace shardproof::layer_norm {

namespace {

/// A block of row_lanes<S> threads takes rows blockIdx.x, blockIdx.x + gridDim.x, ...
template <class S, class Row>
__global__ void __launch_bounds__(row_lanes<S>) each_row(Row row, std::int64_t n, std::int32_t* overflow) {
  for (std::int64_t r = blockIdx.x; r < n; r += gridDim.x) {
    if (row(DeviceTeam<row_lanes<S>>{}, r) && threadIdx.x == 0) atomicOr(overflow, 1);
  }
}

}  // namespace

template <class S>
void launch(cuda::Stream& stream, const ForwardRow<S>& row, std::int64_t n, std::int32_t* overflow) {
  cuda::launch(stream, n, row_lanes<S>, each_row<S, ForwardRow<S>>, row, n, overflow);
}
template <class S>
void launch(cuda::Stream& stream, const BackwardRow<S>& row, std::int64_t n, std::int32_t* overflow) {
  cuda::launch(stream, n, row_lanes<S>, each_row<S, BackwardRow<S>>, row, n, overflow);
}

template void launch(cuda::Stream&, const ForwardRow<Fixed>&, std::int64_t, std::int32_t*);
template void launch(cuda::Stream&, const ForwardRow<double>&, std::int64_t, std::int32_t*);
template void launch(cuda::Stream&, const ForwardRow<float>&, std::int64_t, std::int32_t*);
template void launch(cuda::Stream&, const BackwardRow<Fixed>&, std::int64_t, std::int32_t*);
template void launch(cuda::Stream&, const BackwardRow<double>&, std::int64_t, std::int32_t*);
template void launch(cuda::Stream&, const BackwardRow<float>&, std::int64_t, std::int32_t*);

}  // namespace shardproof::layer_norm
