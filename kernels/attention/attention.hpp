// SPDX-License-Identifier: Apache-2.0
// Causal self-attention that stores its probabilities (reference/ARITHMETIC.md, sections 5, 7 and 11).
// Shapes: q, o [B*T, heads*head_size]; k, v [B*T, kv_heads*head_size]; probability, mask, dropped [B, heads, T, T];
// documents i32 [B*T]. forward and backward count 4 and 8 B T^2 heads head_size FLOPs: the convention of Korthikanti et
// al. 2022, which counts the masked half too.
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/dropout/dropout.hpp"

namespace shardproof::attention {

struct Shape {
  std::int64_t batch, sequence, heads, kv_heads, head_size;
  std::int64_t window = 0;  ///< 0: causal; else keys j with i - j < window
};

/// What backward needs of forward. mask and dropped are empty without dropout; then dropped is probability.
struct Saved {
  Tensor probability, mask, dropped;
};

/// `site` is nullptr without dropout.
void forward(Queue& queue, const Shape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& documents, const dropout::Site* site, const Saved& saved, const Tensor& o);
/// exact: a score of dO V^T that overflows counts where it is visible, so documents are read again.
void backward(Queue& queue, const Shape& shape, const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& documents, const Tensor& o, const Saved& saved, double dropout_probability,
              const Tensor& dq, const Tensor& dk, const Tensor& dv);

}  // namespace shardproof::attention
