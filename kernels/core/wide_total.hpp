// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/core/wide.hpp"

namespace shardproof {

/// A wide sum on the device, zero at first: four int64 lanes for Fixed (added to in any order), one double else.
class WideTotal {
 public:
  WideTotal(Queue& queue, Dtype scalar, std::string name);
  /// The total in units of the terms, after all work queued so far.
  double fetch(Queue& queue) const;

  Dtype scalar() const { return scalar_; }
  const Tensor& tensor() const { return tensor_; }  ///< i64 [4] or f64 [1], category workspace

 private:
  Dtype scalar_;
  Tensor tensor_;
};

}  // namespace shardproof
