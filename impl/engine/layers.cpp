// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/layers.hpp"

#include <utility>

#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/matmul/matmul.hpp"

namespace shardproof::engine {

Tensor joined(const Pass& pass, Accumulator sum, std::string_view purpose) {
  pass.split.join(pass.queue, sum, purpose);
  return sum.finish(pass.queue);
}

Tensor Linear::forward(const Pass& pass, std::string name, const Tensor& x) const {
  Tensor y = pass.activation(std::move(name), {x.dim(0), outputs()});
  matmul::forward(pass.queue, x, weight_->weights(pass.version), bias_ ? bias_->weights(pass.version) : Tensor(), y);
  return y;
}

Tensor Linear::forward_joined(const Pass& pass, std::string name, const Tensor& x, std::string_view purpose) const {
  if (!pass.split.cut()) return forward(pass, std::move(name), x);
  const Accumulator y = pass.sum(std::move(name), {x.dim(0), outputs()});
  matmul::forward(pass.queue, x, weight_->weights(pass.version),
                  bias_ && pass.split.first() ? bias_->weights(pass.version) : Tensor(), y);
  return joined(pass, y, purpose);
}

Tensor Linear::backward_input(const Pass& pass, std::string name, const Tensor& dy) const {
  Tensor dx = pass.activation(std::move(name), {dy.dim(0), inputs()});
  matmul::backward_input(pass.queue, dy, weight_->weights(pass.version), dx);
  return dx;
}

Tensor Linear::backward_input_joined(const Pass& pass, std::string name, const Tensor& dy,
                                     std::string_view purpose) const {
  if (!pass.split.cut()) return backward_input(pass, std::move(name), dy);
  const Accumulator dx = pass.sum(std::move(name), {dy.dim(0), inputs()});
  backward_input(pass, dy, dx);
  return joined(pass, dx, purpose);
}

void Linear::backward_input(const Pass& pass, const Tensor& dy, const Accumulator& dx) const {
  matmul::backward_input(pass.queue, dy, weight_->weights(pass.version), dx);
}

void Linear::backward_input(const Pass& pass, const Tensor& dy, plan::Range range, const Accumulator& dx) const {
  matmul::backward_input(pass.queue, dy, weight_->weights(pass.version).rows(range.begin, range.size()), dx);
}

void Linear::backward_weight(const Pass& pass, const Tensor& dy, const Tensor& x) const {
  if (weight_->gradient) matmul::backward_weight(pass.queue, dy, x, weight_->gradient);
  if (bias_ && bias_->gradient) matmul::backward_bias(pass.queue, dy, bias_->gradient);
  if (weight_->gradient && pass.tamper.contraction)
    pass.tamper.contraction(pass.step, weight_->parameter().name, pass.queue, dy, x, weight_->gradient);
}

Tensor Norm::forward(const Pass& pass, const std::string& name, const Tensor& x, Saved& saved) const {
  Tensor y = pass.activation(name + "_output", x.dims());
  saved = {x, pass.activation(name + "_mean", {x.dim(0)}), pass.activation(name + "_rstd", {x.dim(0)})};
  layer_norm::forward(pass.queue, x, weight_->weights(pass.version), bias_->weights(pass.version),
                      pass.workload.layer_norm_epsilon, y, saved.mean, saved.rstd);
  return y;
}

Tensor Norm::backward_input(const Pass& pass, const Tensor& dy, const Saved& saved) const {
  Tensor dx = pass.activation("norm_input.gradient", dy.dims());
  layer_norm::backward_input(pass.queue, dy, saved.input, saved.mean, saved.rstd, weight_->weights(pass.version), dx);
  return dx;
}

void Norm::backward_weight(const Pass& pass, const Tensor& dy, const Saved& saved) const {
  layer_norm::backward_weight(pass.queue, dy, saved.input, saved.mean, saved.rstd, weight_->gradient, bias_->gradient);
}

}  // namespace shardproof::engine
