// SPDX-License-Identifier: Apache-2.0
// The two ends of the model: the embedding before the blocks, and final norm, head and loss after them.
#pragma once

#include "impl/engine/layers.hpp"
#include "kernels/core/wide_total.hpp"

namespace shardproof::engine {

class Embedding {
 public:
  explicit Embedding(ParameterStore& store);
  Tensor forward(const Pass& pass, step::SavedTensors& saved) const;
  /// I: the gradient of the sum of embeddings, before its dropout; nothing lies below it.
  void backward_input(const Pass& pass, const Tensor& dy, step::SavedTensors& saved) const;
  void backward_weight(const Pass& pass, step::SavedTensors& saved) const;

 private:
  ParameterSlot *token_, *position_;
};

class Head {
 public:
  Head(ParameterStore& store, const workload::Workload& workload);
  /// Adds the microbatch's losses to `loss`.
  void forward(const Pass& pass, const Tensor& x, const WideTotal& loss, step::SavedTensors& saved) const;
  /// `factor`: loss scale over the number of labels of the global batch.
  Tensor backward_input(const Pass& pass, double factor, step::SavedTensors& saved) const;
  void backward_weight(const Pass& pass, step::SavedTensors& saved) const;

 private:
  Norm norm_;
  Linear linear_;
};

}  // namespace shardproof::engine
