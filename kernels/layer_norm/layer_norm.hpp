// SPDX-License-Identifier: Apache-2.0
// Layer norm over the last dim (reference/ARITHMETIC.md, sections 5 and 7; Ba, Kiros and Hinton 2016).
// Shapes: x, y, dy, dx [n, H]; weight, bias [H]; mean, rstd [n].
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::layer_norm {

void forward(Queue& queue, const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
             const Tensor& mean, const Tensor& rstd);
void backward_input(Queue& queue, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, const Tensor& dx);
/// An empty accumulator (a frozen parameter) is left out.
void backward_weight(Queue& queue, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                     const Accumulator& dweight, const Accumulator& dbias);

}  // namespace shardproof::layer_norm
