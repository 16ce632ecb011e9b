// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/track.hpp"
#include "kernels/dropout/dropout.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::engine {

/// One microbatch on its way through the model: where it lies in the global batch, and its inputs on the device.
struct Pass {
  Queue& queue;
  const workload::Workload& workload;
  Track track;
  std::int64_t step, first_sample, samples;
  Tensor tokens, labels, documents;  ///< i32 [samples * sequence]

  std::int64_t rows() const { return samples * workload.sequence; }
  bool has_dropout() const { return workload.dropout > 0; }

  /// A fresh activation of the track's scalar.
  Tensor activation(std::string name, Dims dims) const;
  /// A sum of input gradients, zero.
  Accumulator gradient_sum(std::string name, Dims dims) const;
  /// The dropout site of a layer; `per_sample` counts the elements that one sample has in its logical tensor.
  dropout::Site site(workload::DropoutSite site, std::int64_t layer, std::int64_t per_sample) const;

  /// Applies a [rows, hidden] dropout site: returns x itself where dropout is off, else the masked tensor and `mask`.
  Tensor drop(workload::DropoutSite site, std::int64_t layer, const Tensor& x, Tensor& mask) const;
  /// Its backward: dy itself where `mask` is empty.
  Tensor drop_backward(const Tensor& mask, const Tensor& dy) const;
};

}  // namespace shardproof::engine
