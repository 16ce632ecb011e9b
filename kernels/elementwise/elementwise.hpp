// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/queue.hpp"

namespace shardproof::elementwise {

/// z = fin(x + y). z may be x or y.
void add(Queue& queue, const Tensor& x, const Tensor& y, const Tensor& z);

}  // namespace shardproof::elementwise
