// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/memory.hpp"

#include <numeric>

#include "harness/predict/shape.hpp"

namespace shardproof::predict {

RoleBytes role_bytes(Track track) {
  const auto scalar = static_cast<std::int64_t>(size_of(scalar_of(track)));
  const auto state = static_cast<std::int64_t>(size_of(state_of(track)));
  return {
      .activation = scalar, .statistic = scalar, .mask = 1, .parameter = scalar, .gradient = scalar, .state = state};
}

std::int64_t parameter_count(const workload::Workload& workload) {
  const Shape w(workload);
  const std::int64_t block = 2 * w.h * (w.h + w.k + w.m) + 7 * w.h + 2 * w.k + w.m;
  const std::int64_t head = workload.tied_head ? 0 : w.v * w.h;
  const std::int64_t unused = std::accumulate(workload.unused.begin(), workload.unused.end(), std::int64_t{0});
  return (w.v + w.s) * w.h + w.own_blocks() * block + 2 * w.h + head + unused;
}

std::int64_t trainable_count(const workload::Workload& workload) {
  return parameter_count(workload) - frozen_count(workload);
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

std::int64_t saved_block_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples) {
  const Shape w(workload);
  const std::int64_t rows = w.s * samples;
  const std::int64_t scores = w.a * w.s * w.s * samples;
  // The inputs and outputs of both norms, the query and the attention's output; key and value; around the activation.
  std::int64_t total = rows * (6 * w.h + 2 * w.k + 2 * w.m) * bytes.activation + scores * bytes.activation;
  total += 4 * rows * bytes.statistic;
  if (workload.dropout > 0) total += scores * (bytes.activation + bytes.mask) + 2 * rows * w.h * bytes.mask;
  return total;
}

std::int64_t saved_head_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples) {
  const Shape w(workload);
  return w.s * samples * ((2 * w.h + w.v) * bytes.activation + 4 * bytes.statistic);
}

Memory memory(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples,
              std::int64_t microbatches) {
  const std::int64_t largest = (samples + microbatches - 1) / microbatches;
  Memory result{.parameter = parameter_bytes(workload, bytes),
                .gradient = gradient_bytes(workload, bytes),
                .optimizer_state = state_bytes(workload, bytes),
                .saved_embedding = saved_embedding_bytes(workload, bytes, largest),
                .saved_block = saved_block_bytes(workload, bytes, largest),
                .saved_head = saved_head_bytes(workload, bytes, largest)};
  result.saved = result.saved_embedding + workload.layers * result.saved_block + result.saved_head;
  return result;
}

}  // namespace shardproof::predict
