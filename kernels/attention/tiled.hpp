// SPDX-License-Identifier: Apache-2.0
// The function of attention.hpp without a matrix of scores: a tile of them at a time, and of each row the greatest
// score and the sum of exponentials are kept for backward, which computes the probabilities again (Dao et al. 2022,
// algorithms 1 and 4; Dao 2023). exact: forward takes all maxima before any exponential (Milakov and Gimelshein 2018,
// algorithm 2), so that its bits are those of the kernel that stores; f64 and f32: it takes tiles as they come and
// scales what it has whenever the maximum grows (their algorithm 3). Tiles that nothing sees are left out.
// FLOPs: as attention.hpp; scores that are computed again count as recomputed, 2 B T^2 heads head_size each time: once
// in backward, and in forward once in exact.
#pragma once

#include "kernels/attention/attention.hpp"

namespace shardproof::attention {

/// What backward needs of forward, [B, heads, T] each: m = max_j s_j and l = sum_j exp(s_j - m) of each row.
struct RowStatistics {
  Tensor max, sum;
};

/// Operands as of forward(). Masks are drawn, used and forgotten: backward draws them again.
void tiled_forward(Queue& queue, const Shape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                   const Tensor& documents, const dropout::Site* site, const RowStatistics& statistics,
                   const Tensor& o);
/// dq = , dk += , dv += , as backward(); `site` as forward had it.
void tiled_backward(Queue& queue, const Shape& shape, const Tensor& d_o, const Tensor& q, const Tensor& k,
                    const Tensor& v, const Tensor& documents, const dropout::Site* site, const Tensor& o,
                    const RowStatistics& statistics, const Tensor& dq, const Accumulator& dk, const Accumulator& dv);

}  // namespace shardproof::attention
