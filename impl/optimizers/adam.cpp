// SPDX-License-Identifier: Apache-2.0
#include "impl/step/optimizer.hpp"
#include "kernels/optimizers/optimizers.hpp"

namespace shardproof::optimizers {

namespace {

constexpr std::string_view states[] = {"first_moment", "second_moment"};

template <bool decoupled>
void update(Queue& queue, const step::UpdateContext& c, const workload::Parameter& parameter, const Tensor& p,
            const Tensor& g, std::span<const Tensor> state) {
  const auto& w = c.workload;
  const AdamConstants constants{.learning_rate = c.learning_rate,
                                .beta1 = w.beta1,
                                .beta2 = w.beta2,
                                .epsilon = w.epsilon,
                                .step = c.step_taken,
                                .decoupled_decay = decoupled,
                                .weight_decay = parameter.decays ? w.weight_decay : 0.0};
  adam(queue, p, g, {c.loss_scale, c.clip_factor}, constants, state[0], state[1]);
}

}  // namespace

extern const step::Optimizer adam_technique{
    .name = "adam", .paper = "Kingma and Ba 2015", .states = states, .update = update<false>};
extern const step::Optimizer adamw_technique{
    .name = "adamw", .paper = "Loshchilov and Hutter 2019", .states = states, .update = update<true>};

}  // namespace shardproof::optimizers
