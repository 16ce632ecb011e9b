// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/cuda.hpp"
#include "kernels/layer_norm/layer_norm_row.hpp"

namespace shardproof::layer_norm {

/// Rows 0..n-1 of device memory, as forward() and backward_input() of layer_norm.hpp. *overflow becomes 1 if a row says
/// that it overflowed.
template <class S>
void launch(cuda::Stream& stream, const ForwardRow<S>& row, std::int64_t n, std::int32_t* overflow);
template <class S>
void launch(cuda::Stream& stream, const BackwardRow<S>& row, std::int64_t n, std::int32_t* overflow);

}  // namespace shardproof::layer_norm
