// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/queue.hpp"

namespace shardproof::elementwise {

/// z = fin(x + y). z may be x or y.
void add(Queue& queue, const Tensor& x, const Tensor& y, const Tensor& z);

/// to [n, m] = the columns first..first+m-1 of from [n, k].
void columns(Queue& queue, const Tensor& from, std::int64_t first, const Tensor& to);

}  // namespace shardproof::elementwise
