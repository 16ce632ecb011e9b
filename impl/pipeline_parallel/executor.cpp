// SPDX-License-Identifier: Apache-2.0
#include "impl/pipeline_parallel/executor.hpp"

#include "kernels/core/errors.hpp"

namespace shardproof::pipeline_parallel {

Executor::Executor(Queue& queue, comm::Communicator forward, comm::Communicator backward, std::int64_t stages)
    : queue_(queue), forward_(std::move(forward)), backward_(std::move(backward)), stages_(stages) {}

bool Executor::is_mine(std::int64_t stage) const {
  return plan::rank_of_stage(stage, forward_.size()) == forward_.place();
}

Tensor Executor::take(Way way, std::int64_t stage, std::int64_t microbatch, step::StageProgram& program) {
  const std::int64_t from = stage - static_cast<std::int64_t>(way);
  if (!is_stage(from)) return {};
  if (is_mine(from)) {
    auto node = handed_[way == Way::backward].extract({stage, microbatch});
    if (node.empty()) throw InternalError("pipeline: nothing was handed to stage " + std::to_string(stage));
    return std::move(node.mapped());
  }
  Tensor tensor = program.boundary(microbatch);
  channel(way).receive(queue_, tensor, plan::rank_of_stage(from, forward_.size()), purpose(way), {stage, microbatch});
  return tensor;
}

void Executor::give(Way way, std::int64_t stage, std::int64_t microbatch, const Tensor& tensor) {
  const std::int64_t to = stage + static_cast<std::int64_t>(way);
  if (!is_stage(to)) return;
  if (is_mine(to)) {
    handed_[way == Way::backward][{to, microbatch}] = tensor;
    return;
  }
  channel(way).send(queue_, tensor, plan::rank_of_stage(to, forward_.size()), purpose(way), {to, microbatch});
}

void Executor::run(const std::vector<plan::Action>& actions, step::StageProgram& program,
                   const std::function<void(const plan::Action&)>& done) {
  using plan::ActionKind;
  for (const auto& action : actions) {
    const auto [stage, kind, microbatch, slice] = action;
    if (slice != plan::Action::whole)
      throw NotSupported("pipeline: " + plan::print(action) + ": slices are not executed");
    if (kind == ActionKind::update)
      throw NotSupported("pipeline: " + plan::print(action) + ": updates inside of a schedule are not executed");
    const Way way = kind == ActionKind::forward ? Way::forward : Way::backward;
    const bool passes_on = kind != ActionKind::backward_weight;
    Tensor tensor = passes_on ? take(way, stage, microbatch, program) : Tensor();
    {
      const Recorded recorded(queue_.device().spans(), ActionSpan{{}, plan::letter_of(kind), stage, microbatch});
      switch (kind) {
        case ActionKind::forward: tensor = program.forward(stage, microbatch, std::move(tensor)); break;
        case ActionKind::backward_input: tensor = program.backward_input(stage, microbatch, std::move(tensor)); break;
        case ActionKind::backward_weight: program.backward_weight(stage, microbatch); break;
        case ActionKind::backward: tensor = program.backward(stage, microbatch, std::move(tensor)); break;
        case ActionKind::update: break;
      }
    }
    if (passes_on) give(way, stage, microbatch, tensor);
    done(action);
  }
  for (const auto& way : handed_) {
    if (way.empty()) continue;
    const auto [stage, microbatch] = way.begin()->first;
    throw InternalError("pipeline: stage " + std::to_string(stage) +
                        " has not taken what it was handed of microbatch " + std::to_string(microbatch));
  }
}

}  // namespace shardproof::pipeline_parallel
