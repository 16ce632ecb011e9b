// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/launch.cuh"
#include "kernels/optimizers/optimizers_cuda.hpp"

namespace shardproof::optimizers {

namespace {

constexpr int threads = 256;

/// Elements taken by all threads of the grid.
struct Grid {
  template <class F>
  __device__ void each(std::int64_t n, F f) const {
    const std::int64_t all = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += all) f(i);
  }
};

template <class Row>
__global__ void __launch_bounds__(threads) elements(Row row, std::int64_t n) {
  row(Grid{}, n);
}

}  // namespace

template <class S, bool decoupled>
void launch(cuda::Stream& stream, const AdamRow<S, decoupled>& row, std::int64_t n) {
  cuda::launch(stream, (n + threads - 1) / threads, threads, elements<AdamRow<S, decoupled>>, row, n);
}

template void launch(cuda::Stream&, const AdamRow<Fixed, false>&, std::int64_t);
template void launch(cuda::Stream&, const AdamRow<Fixed, true>&, std::int64_t);
template void launch(cuda::Stream&, const AdamRow<double, false>&, std::int64_t);
template void launch(cuda::Stream&, const AdamRow<double, true>&, std::int64_t);
template void launch(cuda::Stream&, const AdamRow<float, false>&, std::int64_t);
template void launch(cuda::Stream&, const AdamRow<float, true>&, std::int64_t);

}  // namespace shardproof::optimizers
