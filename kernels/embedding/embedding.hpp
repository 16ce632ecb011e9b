// SPDX-License-Identifier: Apache-2.0
// Token and position embeddings (reference/ARITHMETIC.md, sections 5 and 7). Shapes: tokens i32 [n], row r of position
// r % T; token_weight [V, H]; position_weight [T, H]; y, dy [n, H].
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::embedding {

/// y = token_weight[token] + position_weight[position]. Throws DeviceError for a token outside 0..V-1.
void forward(Queue& queue, const Tensor& tokens, const Tensor& token_weight, const Tensor& position_weight,
             const Tensor& y);
/// An empty accumulator (a frozen parameter) is left out.
void backward_weight(Queue& queue, const Tensor& tokens, const Tensor& dy, std::int64_t sequence,
                     const Accumulator& dtoken, const Accumulator& dposition);

}  // namespace shardproof::embedding
