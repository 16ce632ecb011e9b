// SPDX-License-Identifier: Apache-2.0
// GELU (tanh form) and ReLU, elementwise (reference/ARITHMETIC.md, sections 3, 5 and 7).
#pragma once

#include "kernels/core/queue.hpp"

namespace shardproof::activation {

enum class Kind : std::uint8_t { gelu, relu };

/// y = f(x); all tensors have the same number of elements.
void forward(Queue& queue, Kind kind, const Tensor& x, const Tensor& y);
/// dx = dy f'(x)
void backward(Queue& queue, Kind kind, const Tensor& x, const Tensor& dy, const Tensor& dx);

}  // namespace shardproof::activation
