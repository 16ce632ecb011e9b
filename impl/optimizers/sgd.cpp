// SPDX-License-Identifier: Apache-2.0
#include "impl/step/optimizer.hpp"
#include "kernels/optimizers/optimizers.hpp"

namespace shardproof::optimizers {

extern const step::Optimizer sgd_technique{
    .name = "sgd",
    .paper = "Robbins and Monro 1951",
    .states = {},
    .update =
        [](Queue& queue, const step::UpdateContext& c, const workload::Parameter&, const Tensor& p, const Tensor& g,
           std::span<const Tensor>) {
          sgd(queue, p, g, {c.loss_scale, c.clip_factor}, c.learning_rate);
        },
};

}  // namespace shardproof::optimizers
