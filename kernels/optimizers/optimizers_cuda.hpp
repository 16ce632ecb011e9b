// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/cuda.hpp"
#include "kernels/optimizers/adam_row.hpp"

namespace shardproof::optimizers {

/// Elements 0..n-1 of device memory, as adam() of optimizers.hpp.
template <class S, bool decoupled>
void launch(cuda::Stream& stream, const AdamRow<S, decoupled>& row, std::int64_t n);

}  // namespace shardproof::optimizers
