// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/core/tensor.hpp"

namespace shardproof::step {

/// What a pipeline runs: the parts of the model that lie on one stage. Tensors at its boundaries are [rows, hidden] of
/// the microbatch; the first stage takes none forward and returns none backward, the last returns none forward and
/// takes none backward (empty tensors).
class StageProgram {
 public:
  virtual ~StageProgram() = default;
  virtual Tensor forward(std::int64_t stage, std::int64_t microbatch, Tensor input) = 0;
  virtual Tensor backward_input(std::int64_t stage, std::int64_t microbatch, Tensor output_gradient) = 0;
  virtual void backward_weight(std::int64_t stage, std::int64_t microbatch) = 0;
  /// backward_input and backward_weight, layer by layer, so that what only the weights' gradients need goes at once.
  virtual Tensor backward(std::int64_t stage, std::int64_t microbatch, Tensor output_gradient) = 0;
  /// The stage's weights get the update of the microbatch: their next version.
  virtual void update(std::int64_t stage, std::int64_t microbatch) = 0;
  /// An uninitialised tensor of a boundary's dims.
  virtual Tensor boundary(std::int64_t microbatch) = 0;
};

}  // namespace shardproof::step
