// SPDX-License-Identifier: Apache-2.0
// Closed forms of memory, written by hand from reference/ARITHMETIC.md, sections 4, 9 and 11, as polynomials in the
// workload's sizes, in the widths that a rank holds, and in the bytes of each role. They never see the tensors of a
// run, nor workload::parameters(), nor plan::Layout's: a form that disagrees with the memory ledger is a finding. Those
// without a Holding are one device's.
#pragma once

#include <cstdint>

#include "harness/predict/holding.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::predict {

/// Bytes of one element of each role.
struct RoleBytes {
  std::int64_t activation, statistic, mask, parameter, gradient, state;
};
RoleBytes role_bytes(Track track);

/// Elements of all parameters, and of those that are not frozen (they have a gradient and optimizer state). A block
/// that two layers share counts once.
std::int64_t parameter_count(const workload::Workload& workload);
std::int64_t trainable_count(const workload::Workload& workload);

/// Tensors of optimizer state per trainable parameter: sgd 0, momentum 1, adam and adamw 2.
std::int64_t state_tensors(workload::OptimizerKind optimizer);

std::int64_t parameter_bytes(const workload::Workload& workload, const RoleBytes& bytes);
std::int64_t gradient_bytes(const workload::Workload& workload, const RoleBytes& bytes);
std::int64_t state_bytes(const workload::Workload& workload, const RoleBytes& bytes);

/// What each part of the model keeps from forward to backward, for a microbatch of `samples`. Stored, at 2
/// bytes, with dropout, without statistics, kv_heads = heads and mlp_hidden = 4 hidden, a block is sbh(34 + 5as/h) on
/// one device and sbh(10 + 24/t + 5as/(ht)) on one of t tensor ranks: Korthikanti et al. 2022, eq. (1) and (2). Tiled,
/// it is without the terms in 5as/h, as after their selective recomputation, and has two statistics of each row of
/// scores.
std::int64_t saved_embedding_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples);
std::int64_t saved_block_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples);

/// Everything that a rank's parts on one stage keep of a microbatch: from forward to the backward for inputs, and from
/// that to the backward for weights, where a schedule has the two apart. The latter is what the weights' gradients are
/// products of: inputs of linear maps and of norms, and the gradients of their outputs (Qi et al. 2024, table 1, M_W).
std::int64_t saved_stage_bytes(const workload::Workload& workload, const Holding& stage, const RoleBytes& bytes,
                               std::int64_t samples);
std::int64_t kept_for_weights_bytes(const workload::Workload& workload, const Holding& stage, const RoleBytes& bytes,
                                    std::int64_t samples);
std::int64_t saved_block_bytes(const workload::Workload& workload, const Holding& holding, const RoleBytes& bytes,
                               std::int64_t samples);
/// Final norm, logits and the softmax's row statistics.
std::int64_t saved_head_bytes(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples);
std::int64_t saved_head_bytes(const workload::Workload& workload, const Holding& holding, const RoleBytes& bytes,
                              std::int64_t samples);

/// The above together: what a run holds at least. What it holds besides (workspace, gradients of activations, batch,
/// messages) has no form.
struct Memory {
  std::int64_t parameter = 0, gradient = 0, optimizer_state = 0;
  std::int64_t saved = 0;  ///< of all parts, of all microbatches that are in flight at once
  std::int64_t total() const { return parameter + gradient + optimizer_state + saved; }
};
/// Of one device, for steps of `samples` in `microbatches` parts.
Memory memory(const workload::Workload& workload, const RoleBytes& bytes, std::int64_t samples,
              std::int64_t microbatches = 1);

}  // namespace shardproof::predict
