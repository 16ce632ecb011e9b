// SPDX-License-Identifier: Apache-2.0
#include "impl/pipeline_parallel/executor.hpp"

#include "kernels/core/errors.hpp"

namespace shardproof::pipeline_parallel {

Executor::Executor(Queue& queue, comm::Communicator forward, comm::Communicator backward,
                   const plan::Placement& placement, Boundary boundary)
    : queue_(queue),
      forward_(std::move(forward)),
      backward_(std::move(backward)),
      placement_(placement),
      boundary_(std::move(boundary)) {}

Tensor Executor::take(Way way, std::int64_t stage, std::int64_t microbatch, step::StageProgram& program) {
  const std::int64_t from = stage - static_cast<std::int64_t>(way);
  if (!is_stage(from)) return {};
  const std::int64_t rank = placement_.rank_of(from, microbatch);
  if (rank == forward_.place()) {
    auto node = handed_[way == Way::backward].extract({stage, microbatch});
    if (node.empty()) throw InternalError("pipeline: nothing was handed to stage " + std::to_string(stage));
    return std::move(node.mapped());
  }
  Tensor tensor = program.boundary(microbatch);
  boundary_.receive(queue_, channel(way), tensor, rank, purpose(way), {stage, microbatch});
  return tensor;
}

void Executor::give(Way way, std::int64_t stage, std::int64_t microbatch, const Tensor& tensor) {
  const std::int64_t to = stage + static_cast<std::int64_t>(way);
  if (!is_stage(to)) return;
  const std::int64_t rank = placement_.rank_of(to, microbatch);
  if (rank == forward_.place()) {
    handed_[way == Way::backward][{to, microbatch}] = tensor;
    return;
  }
  boundary_.send(queue_, channel(way), tensor, rank, purpose(way), {to, microbatch});
}

void Executor::run(std::span<const plan::Action> actions, step::StageProgram& program,
                   const std::function<void(const plan::Action&)>& done) {
  using plan::ActionKind;
  for (const auto& action : actions) {
    const auto [stage, kind, microbatch, slice] = action;
    if (slice != plan::Action::whole)
      throw NotSupported("pipeline: " + plan::print(action) + ": slices are not executed");
    const Way way = kind == ActionKind::forward ? Way::forward : Way::backward;
    const bool passes_on = kind != ActionKind::backward_weight && kind != ActionKind::update;
    Tensor tensor = passes_on ? take(way, stage, microbatch, program) : Tensor();
    {
      const Recorded recorded(queue_.device().spans(), ActionSpan{{}, plan::letter_of(kind), stage, microbatch});
      switch (kind) {
        case ActionKind::forward: tensor = program.forward(stage, microbatch, std::move(tensor)); break;
        case ActionKind::backward_input: tensor = program.backward_input(stage, microbatch, std::move(tensor)); break;
        case ActionKind::backward_weight: program.backward_weight(stage, microbatch); break;
        case ActionKind::backward: tensor = program.backward(stage, microbatch, std::move(tensor)); break;
        case ActionKind::update: program.update(stage, microbatch); break;
      }
    }
    if (passes_on) give(way, stage, microbatch, tensor);
    done(action);
  }
}

void Executor::end() const {
  for (const auto& way : handed_) {
    if (way.empty()) continue;
    const auto [stage, microbatch] = way.begin()->first;
    throw InternalError("pipeline: stage " + std::to_string(stage) +
                        " has not taken what it was handed of microbatch " + std::to_string(microbatch));
  }
}

}  // namespace shardproof::pipeline_parallel
