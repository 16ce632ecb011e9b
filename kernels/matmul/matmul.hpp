// SPDX-License-Identifier: Apache-2.0
// Linear maps (reference/ARITHMETIC.md, sections 5 and 7). Shapes: x [n, in], w [out, in], bias [out], y [n, out]; each
// of n, in and out may be 0.
// Each counts 2 n in out FLOPs. exact: bit-equal to the definition. f64, f32: an element with K products differs from
// the exact sum by at most gamma_(K+1) times the sum of the products' magnitudes (Higham 2002, section 3.1).
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::matmul {

/// y = bias + x w^T. An empty bias adds nothing.
void forward(Queue& queue, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
/// y += bias + x w^T, an unfinished sum: x and w hold a slice of the inputs (row-parallel maps, Shoeybi et al. 2019),
/// and one slice adds the bias.
void forward(Queue& queue, const Tensor& x, const Tensor& w, const Tensor& bias, const Accumulator& y);
/// dx = dy w, where the map is the only reader of x.
void backward_input(Queue& queue, const Tensor& dy, const Tensor& w, const Tensor& dx);
/// dx += dy w
void backward_input(Queue& queue, const Tensor& dy, const Tensor& w, const Accumulator& dx);
/// dw += dy^T x
void backward_weight(Queue& queue, const Tensor& dy, const Tensor& x, const Accumulator& dw);
/// db += column sums of dy
void backward_bias(Queue& queue, const Tensor& dy, const Accumulator& db);

}  // namespace shardproof::matmul
