// SPDX-License-Identifier: Apache-2.0
// Softmax cross entropy with label smoothing (reference/ARITHMETIC.md, section 6) over a vocabulary that may be cut
// into slices (Shoeybi et al. 2019). Shapes: logits, dlogits [n, v]; labels i32 [n], -1: the row counts for nothing;
// row_max, row_sum, target, logit_sum [n]. Between the calls the slices' row values are combined: row_max by max, the
// others by sum; one slice with first = 0 and v = vocab needs nothing. A label outside -1..vocab-1 is a DeviceError.
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/wide_total.hpp"

namespace shardproof::cross_entropy {

/// Logit j of a row is that of token first + j of vocab; vocab is below 2^22 (NotSupported), so that a sum of
/// exponentials is in range.
struct Slice {
  std::int64_t first, vocab;
};

/// max z of every row; of no logits what any number replaces: the lowest Fixed in range, -infinity.
void row_max(Queue& queue, const Tensor& logits, const Tensor& row_max);
/// row_sum = sum of exp(z - row_max) over the slice; target = the label's z if it is in the slice, else 0; logit_sum +=
/// sum of z over the slice where there is a label (left out if empty: it is read by label smoothing only).
void row_sums(Queue& queue, const Tensor& logits, const Tensor& labels, const Slice& slice, const Tensor& row_max,
              const Tensor& row_sum, const Tensor& target, const Accumulator& logit_sum);
/// Adds the rows' losses to `loss`. logit_sum is empty without smoothing.
void loss(Queue& queue, const Tensor& labels, const Tensor& row_max, const Tensor& row_sum, const Tensor& target,
          const Tensor& logit_sum, double smoothing, std::int64_t vocab, const WideTotal& loss);
/// dlogits = d(loss sum)/dz * factor, factor = scale / N as one double.
void backward(Queue& queue, const Tensor& logits, const Tensor& labels, const Slice& slice, const Tensor& row_max,
              const Tensor& row_sum, double smoothing, double factor, const Tensor& dlogits);

}  // namespace shardproof::cross_entropy
