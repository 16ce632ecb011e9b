// SPDX-License-Identifier: Apache-2.0
// The two layers with parameters that blocks and head are made of. Backward is in two actions: I and W.
#pragma once

#include <string>

#include "impl/engine/parameter_store.hpp"
#include "impl/engine/pass.hpp"
#include "impl/step/saved_tensors.hpp"

namespace shardproof::engine {

/// The finished total over the tensor group.
Tensor joined(const Pass& pass, Accumulator sum, std::string_view purpose);

/// y = bias + x w^T, of the slice of w that this rank holds.
class Linear {
 public:
  /// `bias` is nullptr for a map without.
  Linear(ParameterSlot& weight, ParameterSlot* bias) : weight_(&weight), bias_(bias) {}

  /// Of weights that are whole, or whose outputs are cut.
  Tensor forward(const Pass& pass, std::string name, const Tensor& x) const;
  /// Of weights whose inputs are cut: joined over the tensor group.
  Tensor forward_joined(const Pass& pass, std::string name, const Tensor& x, std::string_view purpose) const;
  /// dx = dy w, where nothing else reads x.
  Tensor backward_input(const Pass& pass, std::string name, const Tensor& dy) const;
  /// The same of weights whose outputs are cut: joined over the tensor group.
  Tensor backward_input_joined(const Pass& pass, std::string name, const Tensor& dy, std::string_view purpose) const;
  /// dx += dy w
  void backward_input(const Pass& pass, const Tensor& dy, const Accumulator& dx) const;
  /// The same for some of the outputs: dy holds those of the range.
  void backward_input(const Pass& pass, const Tensor& dy, plan::Range outputs, const Accumulator& dx) const;
  void backward_weight(const Pass& pass, const Tensor& dy, const Tensor& x) const;

  std::int64_t inputs() const { return weight_->value.dim(1); }
  std::int64_t outputs() const { return weight_->value.dim(0); }

 private:
  ParameterSlot *weight_, *bias_;
};

/// Layer norm; saves its input and the two row statistics.
class Norm {
 public:
  struct Saved {
    Tensor input, mean, rstd;
  };
  Norm(ParameterSlot& weight, ParameterSlot& bias) : weight_(&weight), bias_(&bias) {}

  Tensor forward(const Pass& pass, const std::string& name, const Tensor& x, Saved& saved) const;
  Tensor backward_input(const Pass& pass, const Tensor& dy, const Saved& saved) const;
  void backward_weight(const Pass& pass, const Tensor& dy, const Saved& saved) const;

 private:
  ParameterSlot *weight_, *bias_;
};

}  // namespace shardproof::engine
