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

Memory memory(const workload::Workload& workload, const Holding& holding, const RoleBytes& bytes, std::int64_t largest,
              std::int64_t in_flight) {
  const Count held = count(workload, holding);
  const auto embedding = [&](std::int64_t samples) {
    return holding.is_first ? saved_embedding_bytes(workload, bytes, samples) : 0;
  };
  const auto block = [&](std::int64_t samples) {
    return holding.layers.size() > 0 ? saved_block_bytes(workload, holding, bytes, samples) : 0;
  };
  const auto head = [&](std::int64_t samples) {
    return holding.is_last ? saved_head_bytes(workload, holding, bytes, samples) : 0;
  };
  return {.parameter = held.elements * bytes.parameter,
          .gradient = held.trainable_elements * bytes.gradient,
          .optimizer_state = held.trainable_elements * state_tensors(workload.optimizer) * bytes.state,
          .saved_embedding = embedding(largest),
          .saved_block = block(largest),
          .saved_head = head(largest),
          .saved = embedding(in_flight) + holding.layers.size() * block(in_flight) + head(in_flight)};
}

Memory memory(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples,
              std::int64_t microbatches) {
  const std::int64_t largest = (samples + microbatches - 1) / microbatches;
  return memory(workload, whole(workload), bytes, largest, largest);
}

}  // namespace shardproof::predict
