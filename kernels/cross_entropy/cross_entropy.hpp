// SPDX-License-Identifier: Apache-2.0
// Softmax cross entropy with label smoothing (reference/ARITHMETIC.md, section 6). Shapes: logits, dlogits [n, V];
// labels i32 [n], -1: the row counts for nothing; row_max, row_sum [n].
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/core/wide_total.hpp"

namespace shardproof::cross_entropy {

/// Adds the rows' losses to `loss` and keeps max z and sum exp(z - max z) of every row.
void forward(Queue& queue, const Tensor& logits, const Tensor& labels, double smoothing, const Tensor& row_max,
             const Tensor& row_sum, const WideTotal& loss);
/// dlogits = d(loss sum)/dz * factor, factor = scale / N as one double. Throws DeviceError for a label outside -1..V-1.
void backward(Queue& queue, const Tensor& logits, const Tensor& labels, const Tensor& row_max, const Tensor& row_sum,
              double smoothing, double factor, const Tensor& dlogits);

}  // namespace shardproof::cross_entropy
