// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/core/queue.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::step {

/// What an update needs beside the tensors.
struct UpdateContext {
  const workload::Workload& workload;
  double loss_scale, clip_factor, learning_rate;
  std::int64_t step_taken;  ///< t of the optimizer: the number of updates made, this one included
};

/// The technique behind `optimizer=NAME`: the update of one parameter and the state it keeps.
struct Optimizer {
  std::string_view name;
  std::string_view paper;
  std::span<const std::string_view> states;  ///< each as large as the parameter; in the order of `update`
  void (*update)(Queue& queue, const UpdateContext& context, const workload::Parameter& parameter, const Tensor& p,
                 const Tensor& g, std::span<const Tensor> state);
};

/// All optimizers, in the order of impl/optimizers/CMakeLists.txt (generated).
std::span<const Optimizer* const> optimizers();
/// Throws NotSupported, naming those there are.
const Optimizer& optimizer(std::string_view name);

}  // namespace shardproof::step
