// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/core/observable.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::engine {

/// Called with what a rank has just computed, before anything reads it: for planting a wrong bit.
struct Tamper {
  /// An observable tensor that is final. `name` as the observable's.
  std::function<void(std::int64_t step, Observed kind, const std::string& name, Queue& queue, const Tensor& tensor)>
      tensor = {};
  std::function<void(std::int64_t step, Observed kind, Queue& queue, double& value)> scalar = {};
  /// What a part of the model passes on.
  std::function<void(std::int64_t step, const std::string& part, Queue& queue, const Tensor& tensor)> activation = {};
};

}  // namespace shardproof::engine
