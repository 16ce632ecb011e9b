// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "kernels/cuda_standin/types.hpp"

namespace shardproof::cuda_standin {

/// kernel() once by every thread of a grid, block after block, on this thread. At most 1024 threads a block. Throws
/// KernelFault, and what the kernel throws.
void run_grid(const dim3& grid, const dim3& block, const ThreadOrder& order, const std::function<void()>& kernel);

}  // namespace shardproof::cuda_standin
