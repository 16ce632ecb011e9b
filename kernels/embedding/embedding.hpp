// SPDX-License-Identifier: Apache-2.0
// Token and position embeddings (reference/ARITHMETIC.md, sections 5 and 7), of the whole vocabulary or of a slice of
// it (Shoeybi et al. 2019). Shapes: tokens i32 [n] in 0..vocab-1, row r of position r % T; token_weight [v, H], the
// rows first_token .. first_token+v-1 of the table; position_weight [T, H]; y, dy [n, H]. A token outside of 0..vocab-1
// is a DeviceError, in every slice.
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::embedding {

/// y = (the token's row if it is in the slice, else 0) + (the position's row; an empty position_weight adds nothing).
/// The sum of y over all slices, one of them with positions, is the embedding.
void forward(Queue& queue, const Tensor& tokens, const Tensor& token_weight, std::int64_t first_token,
             std::int64_t vocab, const Tensor& position_weight, const Tensor& y);
/// dtoken[token - first_token] += dy for tokens in the slice, dposition[position] += dy. An empty accumulator (a frozen
/// parameter) is left out.
void backward_weight(Queue& queue, const Tensor& tokens, const Tensor& dy, std::int64_t first_token, std::int64_t vocab,
                     std::int64_t sequence, const Accumulator& dtoken, const Accumulator& dposition);

}  // namespace shardproof::embedding
