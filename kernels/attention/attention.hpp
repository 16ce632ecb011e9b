// SPDX-License-Identifier: Apache-2.0
// Causal self-attention that stores its probabilities (reference/ARITHMETIC.md, sections 5, 7 and 11), of all heads or
// of a slice of them (Shoeybi et al. 2019). Shapes: q, o [B*T, heads*head_size]; k, v [B*T, kv_heads*head_size];
// probability, mask, dropped [B, heads, T, T]; documents i32 [B*T]. forward and backward count 4 and 8 B T^2 heads
// head_size FLOPs: the convention of Korthikanti et al. 2022, which counts the masked half too.
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/dropout/dropout.hpp"

namespace shardproof::attention {

/// Query heads first_head .. first_head+heads-1 of total_heads; kv_heads counts the key heads that they need, from
/// first_head/group on. A slice may begin and end inside of a group, and may be empty.
struct Shape {
  std::int64_t batch, sequence, heads, kv_heads, head_size;
  std::int64_t window = 0;       ///< 0: causal; else keys j with i - j < window
  std::int64_t first_head = 0;   ///< of the slice
  std::int64_t total_heads = 0;  ///< of the logical tensor; 0: heads
  std::int64_t group = 0;        ///< query heads per key head; 0: heads / kv_heads
};

/// What backward needs of forward. mask and dropped are empty without dropout; then dropped is probability.
struct Saved {
  Tensor probability, mask, dropped;
};

/// `site` is nullptr without dropout. Its first is the index of the first sample in [samples, total_heads, T, T],
/// whatever the slice: element (b, h, i, j) of a slice is drawn as element (b, first_head + h, i, j).
void forward(Queue& queue, const Shape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& documents, const dropout::Site* site, const Saved& saved, const Tensor& o);
/// dq = , dk += , dv += : several slices may share a key head. exact: a score of dO V^T that overflows counts where it
/// is visible, so documents are read again.
void backward(Queue& queue, const Shape& shape, const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& documents, const Tensor& o, const Saved& saved, double dropout_probability,
              const Tensor& dq, const Accumulator& dk, const Accumulator& dv);

}  // namespace shardproof::attention
