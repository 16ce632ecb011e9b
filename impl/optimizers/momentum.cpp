// SPDX-License-Identifier: Apache-2.0
#include "impl/step/optimizer.hpp"
#include "kernels/optimizers/optimizers.hpp"

namespace shardproof::optimizers {

namespace {
constexpr std::string_view states[] = {"momentum"};
}

extern const step::Optimizer momentum_technique{
    .name = "momentum",
    .paper = "Polyak 1964",
    .states = states,
    .update =
        [](Queue& queue, const step::UpdateContext& c, const workload::Parameter&, const Tensor& p, const Tensor& g,
           std::span<const Tensor> state) {
          momentum(queue, p, g, {c.loss_scale, c.clip_factor}, c.learning_rate, c.workload.momentum, state[0]);
        },
};

}  // namespace shardproof::optimizers
