// SPDX-License-Identifier: Apache-2.0
// Elementwise updates (reference/ARITHMETIC.md, section 9). Parameter p and gradient g are scalars of the track; state
// is f64 for Fixed and f64, f32 for f32. The raw gradient G becomes g = (D(G)/loss_scale)*clip_factor.
#pragma once

#include "kernels/core/queue.hpp"

namespace shardproof::optimizers {

struct GradientScale {
  double loss_scale = 1, clip_factor = 1;
};

void sgd(Queue& queue, const Tensor& p, const Tensor& g, GradientScale scale, double learning_rate);

void momentum(Queue& queue, const Tensor& p, const Tensor& g, GradientScale scale, double learning_rate, double mu,
              const Tensor& m);

struct AdamConstants {
  double learning_rate, beta1, beta2, epsilon;
  std::int64_t step;     ///< t of the bias corrections, from 1
  bool decoupled_decay;  ///< AdamW's expression
  double weight_decay;   ///< 0 outside the decay group; used by AdamW's expression only
};
void adam(Queue& queue, const Tensor& p, const Tensor& g, GradientScale scale, const AdamConstants& constants,
          const Tensor& m, const Tensor& v);

}  // namespace shardproof::optimizers
