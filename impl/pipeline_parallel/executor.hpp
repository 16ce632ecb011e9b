// SPDX-License-Identifier: Apache-2.0
// Executes one rank's part of a schedule. Sends and receives are derived from it: an action's input is received just
// before it, its output is sent just after it; between stages of one rank tensors are handed over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "impl/comm/communicator.hpp"
#include "impl/pipeline_parallel/boundary.hpp"
#include "impl/plan/placement.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/step/stage_program.hpp"

namespace shardproof::pipeline_parallel {

class Executor {
 public:
  /// The ranks of the pipeline in the order of their pp coordinate, on a channel for each way: what goes forward never
  /// waits behind what goes back. The placement outlives it.
  Executor(Queue& queue, comm::Communicator forward, comm::Communicator backward, const plan::Placement& placement,
           Boundary boundary = {});

  /// Runs the rank's next actions in order; `done` is called after each.
  void run(std::span<const plan::Action> actions, step::StageProgram& program,
           const std::function<void(const plan::Action&)>& done);
  /// After the last: throws InternalError for a tensor that was handed over and not taken.
  void end() const;

 private:
  enum class Way : std::int8_t { forward = 1, backward = -1 };
  /// Messages are tagged with the stage that receives them. What comes into `stage` on its way; an empty tensor at the
  /// end of the pipeline.
  Tensor take(Way way, std::int64_t stage, std::int64_t microbatch, step::StageProgram& program);
  /// Passes on what leaves it.
  void give(Way way, std::int64_t stage, std::int64_t microbatch, const Tensor& tensor);
  bool is_stage(std::int64_t stage) const { return stage >= 0 && stage < placement_.stages(); }
  static std::string_view purpose(Way way) { return way == Way::forward ? "stage_output" : "stage_output_gradient"; }
  comm::Communicator& channel(Way way) { return way == Way::forward ? forward_ : backward_; }

  Queue& queue_;
  comm::Communicator forward_, backward_;
  const plan::Placement& placement_;
  Boundary boundary_;
  std::map<std::pair<std::int64_t, std::int64_t>, Tensor> handed_[2];  // by receiving stage and microbatch
};

}  // namespace shardproof::pipeline_parallel
