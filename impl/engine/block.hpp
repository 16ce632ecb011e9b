// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/engine/attention_core.hpp"
#include "impl/engine/layers.hpp"

namespace shardproof::engine {

/// One transformer block (reference/ARITHMETIC.md, sections 5, 7 and 11).
class Block {
 public:
  /// Layer `layer` of the model; its parameters are those of workload::parameter_layer(layer).
  Block(ParameterStore& store, const workload::Workload& workload, std::int64_t layer);

  /// x [rows, hidden] to the block's output. Keeps in `saved` what backward reads.
  Tensor forward(const Pass& pass, const Tensor& x, step::SavedTensors& saved) const;
  /// The I action: dy to dx. Adds to `saved` what W reads of the gradients, and releases what only I reads.
  Tensor backward_input(const Pass& pass, const Tensor& dy, step::SavedTensors& saved) const;
  /// The W action: adds to the parameters' gradients and releases the rest.
  void backward_weight(const Pass& pass, step::SavedTensors& saved) const;

 private:
  struct Slots;
  Block(const Slots& slots, std::int64_t layer);

  std::int64_t layer_;
  AttentionCore attention_;
  Norm norm1_, norm2_;
  Linear query_, key_, value_, output_, up_, down_;
};

}  // namespace shardproof::engine
