// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/team_device.cuh"
#include "kernels/optimizers/adam_row.hpp"

namespace shardproof::optimizers {

/// Elements taken by all threads of the grid.
struct Grid {
  template <class F>
  __device__ void each(std::int64_t n, F f) const {
    const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) f(i);
  }
};

template <class Row>
__global__ void __launch_bounds__(256) elements(Row row, std::int64_t n) {
  row(Grid{}, n);
}

template __global__ void elements(AdamRow<Fixed, false>, std::int64_t);
template __global__ void elements(AdamRow<Fixed, true>, std::int64_t);
template __global__ void elements(AdamRow<double, false>, std::int64_t);
template __global__ void elements(AdamRow<double, true>, std::int64_t);
template __global__ void elements(AdamRow<float, false>, std::int64_t);
template __global__ void elements(AdamRow<float, true>, std::int64_t);

}  // namespace shardproof::optimizers
