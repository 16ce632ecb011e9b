// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/core/accumulator.hpp"
#include "kernels/core/observable.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::engine {

/// Called with what a rank has just computed, before anything reads it: for planting an error.
struct Tamper {
  /// An observable tensor that is final. `name` as the observable's.
  std::function<void(std::int64_t step, Observed kind, const std::string& name, Queue& queue, const Tensor& tensor)>
      tensor = {};
  std::function<void(std::int64_t step, Observed kind, Queue& queue, double& value)> scalar = {};
  /// What a part of the model passes on.
  std::function<void(std::int64_t step, const std::string& part, Queue& queue, const Tensor& tensor)> activation = {};
  /// dw += dy^T x of a linear map has been computed, of one microbatch; `name` as the weight's.
  std::function<void(std::int64_t step, const std::string& name, Queue& queue, const Tensor& dy, const Tensor& x,
                     const Accumulator& dw)>
      contraction = {};
};

}  // namespace shardproof::engine
