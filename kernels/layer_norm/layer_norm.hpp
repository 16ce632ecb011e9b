// SPDX-License-Identifier: Apache-2.0
// Layer norm over the last dim (reference/ARITHMETIC.md, sections 5 and 7; Ba, Kiros and Hinton 2016).
// Shapes: x, y, dy, dx [n, H]; weight, bias [H]; mean, rstd [n]; all of one dtype. Sizes that do not agree:
// InternalError.
#pragma once

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::layer_norm {

/// mean m = (sum x)/H;  rstd s = 1/sqrt((sum (x-m)^2)/H + epsilon);  y = ((x-m)*s)*weight + bias
void forward(Queue& queue, const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
             const Tensor& mean, const Tensor& rstd);
/// xh = (x-m)*s;  g = dy*weight;  dx = s*(g - (sum g)/H - xh*(sum g*xh)/H)
void backward_input(Queue& queue, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, const Tensor& dx);
/// dweight += sum over rows of dy*xh;  dbias += sum over rows of dy. An empty accumulator (a frozen parameter) is left
/// out.
void backward_weight(Queue& queue, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                     const Accumulator& dweight, const Accumulator& dbias);

}  // namespace shardproof::layer_norm
