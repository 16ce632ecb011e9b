// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/stage.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/errors.hpp"
#include "kernels/core/thread_memory.hpp"

namespace shardproof::engine {

namespace {

Tensor upload_input(Queue& queue, std::string name, const std::vector<std::int32_t>& values) {
  Tensor tensor(queue, {std::move(name), Dtype::i32, {std::ssize(values)}, Category::workspace});
  upload<std::int32_t>(queue, tensor, values);
  return tensor;
}

Pass pass_of(const Context& context, const workload::Batch& part, std::int64_t version) {
  auto& queue = context.queue;
  return {context,
          part.step,
          part.first,
          part.size(),
          version,
          upload_input(queue, "tokens", part.tokens),
          upload_input(queue, "labels", part.labels),
          upload_input(queue, "documents", part.documents)};
}

}  // namespace

Stages::Stages(const Context& context, ParameterStore& store, const plan::Plan& plan, const plan::Place& place,
               Feed& feed)
    : context_(context), plan_(plan), place_(place), feed_(feed) {
  for (const auto stage : plan.pipeline.placement.stages_of(place.pp)) {
    const auto layers = plan.layout.stage_layers[static_cast<std::size_t>(stage)];
    Parts parts{.embedding = {}, .first_layer = layers.begin, .blocks = {}, .head = {}};
    if (stage == 0) parts.embedding.emplace(store);
    for (auto layer = layers.begin; layer < layers.end; ++layer)
      parts.blocks.emplace_back(store, context.workload, layer);
    if (stage == plan.stages() - 1) parts.head.emplace(store, context.workload);
    parts_.emplace(stage, std::move(parts));
  }
}

void Stages::end() const {
  if (in_flight_.empty()) return;
  const auto [stage, microbatch] = in_flight_.begin()->first;
  throw InternalError("stage " + std::to_string(stage) + ": microbatch " + std::to_string(microbatch) +
                      " has not run all of its actions");
}

workload::Batch Stages::batch_of(std::int64_t microbatch) const {
  const auto parts = plan_.strategy.microbatches;
  const auto& batch = *feed_.input(microbatch).batch;
  return workload::part(batch, plan_.mesh.size(plan::Axis::dp) * parts, place_.dp * parts + microbatch % parts);
}

Tensor Stages::boundary(std::int64_t microbatch) {
  const auto& w = context_.workload;
  const auto parts = plan_.strategy.microbatches;
  const auto samples = plan::part_of(feed_.input(microbatch).batch->size(), plan_.mesh.size(plan::Axis::dp) * parts,
                                     place_.dp * parts + microbatch % parts)
                           .size();
  return {context_.queue,
          {"stage_boundary", scalar_of(context_.track), {samples * w.sequence, w.hidden}, Category::activation}};
}

Stages::InFlight& Stages::in_flight(std::int64_t stage, std::int64_t microbatch) {
  return in_flight_.at({stage, microbatch});
}

Tensor Stages::forward(std::int64_t stage, std::int64_t microbatch, Tensor input) {
  auto& parts = this->parts(stage);
  const auto version = feed_.version(stage, microbatch);
  const auto place = in_flight_.emplace(std::pair{stage, microbatch},
                                        InFlight{pass_of(context_, batch_of(microbatch), version), {}, {}, {}});
  auto& [pass, embedding, head, blocks] = place.first->second;
  peak_in_flight_ = std::max(peak_in_flight_, std::ssize(in_flight_));
  blocks.resize(parts.blocks.size());
  const bool measure = !parts.measured;
  const auto activation_bytes = [] { return allocated_by_this_thread(Category::activation); };
  // A part owns the memory of its input, not that of its output: the next part saves that.
  const auto saved = [&, &pass = pass](const std::string& part, std::int64_t before, const Tensor& output) {
    if (measure) saved_bytes_.push_back({part, activation_bytes() - before - (output ? output.bytes() : 0)});
    if (output && context_.tamper.activation) context_.tamper.activation(pass.step, part, context_.queue, output);
  };

  Tensor x = std::move(input);
  auto before = activation_bytes();
  if (parts.embedding) {
    x = parts.embedding->forward(pass, embedding);
    saved("embedding", before, x);
  }
  for (std::size_t l = 0; l < parts.blocks.size(); ++l) {
    before = activation_bytes() - x.bytes();
    x = parts.blocks[l].forward(pass, x, blocks[l]);
    saved("blocks." + std::to_string(parts.first_layer + static_cast<std::int64_t>(l)), before, x);
  }
  if (parts.head) {
    before = activation_bytes() - x.bytes();
    parts.head->forward(pass, x, *feed_.input(microbatch).loss, head);
    saved("head", before, {});
    x = Tensor();
  }
  parts.measured = true;
  return x;
}

Tensor Stages::go_back(std::int64_t stage, std::int64_t microbatch, Tensor d, bool weights) {
  auto& parts = this->parts(stage);
  auto& [pass, embedding, head, blocks] = in_flight(stage, microbatch);
  if (parts.head) {
    d = parts.head->backward_input(pass, feed_.input(microbatch).factor, head);
    if (weights) parts.head->backward_weight(pass, head);
  }
  for (std::size_t l = blocks.size(); l-- > 0;) {
    d = parts.blocks[l].backward_input(pass, d, blocks[l]);
    if (weights) parts.blocks[l].backward_weight(pass, blocks[l]);
  }
  if (!parts.embedding) return d;
  parts.embedding->backward_input(pass, d, embedding);
  d = Tensor();
  if (weights) parts.embedding->backward_weight(pass, embedding);
  return d;
}

void Stages::land(std::int64_t stage, std::int64_t microbatch) {
  const auto& [pass, embedding, head, blocks] = in_flight(stage, microbatch);
  embedding.require_released();
  head.require_released();
  for (const auto& block : blocks) block.require_released();
  in_flight_.erase({stage, microbatch});
}

Tensor Stages::backward_input(std::int64_t stage, std::int64_t microbatch, Tensor output_gradient) {
  return go_back(stage, microbatch, std::move(output_gradient), false);
}

Tensor Stages::backward(std::int64_t stage, std::int64_t microbatch, Tensor output_gradient) {
  Tensor d = go_back(stage, microbatch, std::move(output_gradient), true);
  land(stage, microbatch);
  return d;
}

void Stages::backward_weight(std::int64_t stage, std::int64_t microbatch) {
  auto& parts = this->parts(stage);
  auto& [pass, embedding, head, blocks] = in_flight(stage, microbatch);
  if (parts.head) parts.head->backward_weight(pass, head);
  for (std::size_t l = blocks.size(); l-- > 0;) parts.blocks[l].backward_weight(pass, blocks[l]);
  if (parts.embedding) parts.embedding->backward_weight(pass, embedding);
  land(stage, microbatch);
}

}  // namespace shardproof::engine
