// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "impl/engine/tamper.hpp"
#include "impl/plan/layout.hpp"
#include "impl/step/linear_split.hpp"
#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/track.hpp"
#include "kernels/dropout/dropout.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::engine {

/// What a rank computes with: its queue, its slice of heads and vocabulary, and what its tensor group exchanges.
struct Context {
  Queue& queue;
  const workload::Workload& workload;
  Track track;
  step::LinearSplit& split;
  plan::HeadSlice heads;
  plan::Range vocab;
  bool shares_key_heads;  ///< with another tensor rank: the gradients of keys and values are joined before their use
  bool tiled_attention;   ///< attention saves row statistics in place of probabilities
  const Tamper& tamper;
};

/// One microbatch on its way through the model: where it lies in the global batch, and its inputs on the device.
struct Pass : Context {
  std::int64_t step, first_sample, samples;
  std::int64_t version;              ///< of the parameters that its forward reads
  Tensor tokens, labels, documents;  ///< i32 [samples * sequence]

  std::int64_t rows() const { return samples * workload.sequence; }
  bool has_dropout() const { return workload.dropout > 0; }

  /// A fresh activation of the track's scalar.
  Tensor activation(std::string name, Dims dims) const;
  /// An unfinished sum of activations or their gradients, zero.
  Accumulator sum(std::string name, Dims dims) const;
  /// The dropout site of a layer; `per_sample` counts the elements that one sample has in its logical tensor.
  dropout::Site site(workload::DropoutSite site, std::int64_t layer, std::int64_t per_sample) const;

  /// Applies a [rows, hidden] dropout site: returns x itself where dropout is off, else the masked tensor and `mask`.
  Tensor drop(workload::DropoutSite site, std::int64_t layer, const Tensor& x, Tensor& mask) const;
  /// Its backward: dy itself where `mask` is empty.
  Tensor drop_backward(const Tensor& mask, const Tensor& dy) const;
};

}  // namespace shardproof::engine
