// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "impl/engine/pass.hpp"
#include "impl/step/saved_tensors.hpp"

namespace shardproof::engine {

/// Attention of one layer over this rank's heads, all of whose keys and values it has (reference/ARITHMETIC.md,
/// sections 5, 7 and 11). The strategy says what forward keeps for backward: probabilities, or statistics of their
/// rows.
class AttentionCore {
 public:
  explicit AttentionCore(std::int64_t layer) : layer_(layer) {}

  /// q [rows, heads * head_size], k and v [rows, key heads * head_size]; returns o, of q's dims.
  Tensor forward(const Pass& pass, const Tensor& q, const Tensor& k, const Tensor& v, step::SavedTensors& saved) const;

  struct Gradients {
    Tensor query;
    Accumulator key, value;  ///< over the query heads of this rank
  };
  /// The I action.
  Gradients backward_input(const Pass& pass, const Tensor& d_o, const step::SavedTensors& saved) const;

 private:
  std::int64_t layer_;
};

}  // namespace shardproof::engine
