// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/memory.hpp"

namespace shardproof::predict {

RoleBytes role_bytes(Track track) {
  const auto scalar = static_cast<std::int64_t>(size_of(scalar_of(track)));
  const auto state = static_cast<std::int64_t>(size_of(state_of(track)));
  return {
      .activation = scalar, .statistic = scalar, .mask = 1, .parameter = scalar, .gradient = scalar, .state = state};
}

std::int64_t parameter_count(const workload::Workload& workload) { return count(workload, whole(workload)).elements; }

std::int64_t trainable_count(const workload::Workload& workload) {
  return count(workload, whole(workload)).trainable_elements;
}

std::int64_t state_tensors(workload::OptimizerKind optimizer) {
  switch (optimizer) {
    case workload::OptimizerKind::sgd: return 0;
    case workload::OptimizerKind::momentum: return 1;
    case workload::OptimizerKind::adam:
    case workload::OptimizerKind::adamw: return 2;
  }
  return 0;
}

std::int64_t parameter_bytes(const workload::Workload& workload, const RoleBytes& bytes) {
  return parameter_count(workload) * bytes.parameter;
}

std::int64_t gradient_bytes(const workload::Workload& workload, const RoleBytes& bytes) {
  return trainable_count(workload) * bytes.gradient;
}

std::int64_t state_bytes(const workload::Workload& workload, const RoleBytes& bytes) {
  return trainable_count(workload) * state_tensors(workload.optimizer) * bytes.state;
}

std::int64_t saved_embedding_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples) {
  const Shape w(workload);
  return workload.dropout > 0 ? w.s * samples * w.h * bytes.mask : 0;
}

std::int64_t saved_block_bytes(const workload::Workload& workload, const Holding& holding, const RoleBytes& bytes,
                               std::int64_t samples) {
  const Shape w(workload);
  const std::int64_t rows = w.s * samples;
  const std::int64_t scores = holding.a * w.s * w.s * samples;
  // Whole: inputs and outputs of both norms. Cut: the query and the attention's output; key and value; around the
  // activation; the scores.
  std::int64_t total = rows * (4 * w.h + 2 * holding.q + 2 * holding.k + 2 * holding.m) * bytes.activation;
  total += 4 * rows * bytes.statistic;
  const bool dropout = workload.dropout > 0;
  if (dropout) total += 2 * rows * w.h * bytes.mask;
  if (holding.tiled) return total + 2 * holding.a * rows * bytes.statistic;
  return total + scores * (dropout ? 2 * bytes.activation + bytes.mask : bytes.activation);
}

std::int64_t saved_head_bytes(const workload::Workload& workload, const Holding& holding, const RoleBytes& bytes,
                              std::int64_t samples) {
  const Shape w(workload);
  return w.s * samples * ((2 * w.h + holding.v) * bytes.activation + 4 * bytes.statistic);
}

std::int64_t saved_block_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples) {
  return saved_block_bytes(workload, whole(workload), bytes, samples);
}

std::int64_t saved_head_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples) {
  return saved_head_bytes(workload, whole(workload), bytes, samples);
}

std::int64_t saved_stage_bytes(const workload::Workload& workload, const Holding& stage, const RoleBytes& bytes,
                               std::int64_t samples) {
  return (stage.is_first ? saved_embedding_bytes(workload, bytes, samples) : 0) +
         stage.layers.size() * saved_block_bytes(workload, stage, bytes, samples) +
         (stage.is_last ? saved_head_bytes(workload, stage, bytes, samples) : 0);
}

std::int64_t kept_for_weights_bytes(const workload::Workload& workload, const Holding& stage, const RoleBytes& bytes,
                                    std::int64_t samples) {
  const Shape w(workload);
  const std::int64_t rows = w.s * samples;
  // A block: input and output of both norms and the gradients of the latter, and those of attention's and MLP's output;
  // query, key and value's gradients and attention's output; around the activation.
  const std::int64_t block =
      (8 * w.h + 2 * stage.q + 2 * stage.k + 2 * stage.m) * bytes.activation + 4 * bytes.statistic;
  const std::int64_t head = (3 * w.h + stage.v) * bytes.activation + 2 * bytes.statistic;
  return rows *
         ((stage.is_first ? w.h * bytes.activation : 0) + stage.layers.size() * block + (stage.is_last ? head : 0));
}

Memory memory(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples,
              std::int64_t microbatches) {
  const Holding all = whole(workload);
  return {.parameter = parameter_bytes(workload, bytes),
          .gradient = gradient_bytes(workload, bytes),
          .optimizer_state = state_bytes(workload, bytes),
          .saved = saved_stage_bytes(workload, all, bytes, (samples + microbatches - 1) / microbatches)};
}

}  // namespace shardproof::predict
