// SPDX-License-Identifier: Apache-2.0
// Closed forms of the FLOPs of a step: 2 per multiply-add of linear maps and attention, all T^2 scores counted, as in
// Korthikanti et al. 2022, appendix A. To be compared with the FLOP ledger.
#pragma once

#include <cstdint>

#include "harness/predict/holding.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::predict {

/// double: exact below 2^53, and large enough for any model.
struct Flops {
  double forward = 0;
  double backward_input = 0;   ///< I: gradients of what flows; attention's backward counts here
  double backward_weight = 0;  ///< W: gradients of weights, none for frozen ones
  double scores_again = 0;     ///< one more product of queries and keys in all layers, where attention is tiled
  Flops& operator+=(const Flops& other) {
    forward += other.forward, backward_input += other.backward_input, backward_weight += other.backward_weight;
    scores_again += other.scores_again;
    return *this;
  }
  double total() const { return forward + backward_input + backward_weight; }
  /// What is computed, work done again included: tiled attention makes its scores again in backward, and in `exact`
  /// twice in forward.
  double hardware(Track track) const { return total() + (track == Track::exact ? 2 : 1) * scores_again; }
};

/// Of a step over `samples`; microbatches do not matter.
Flops flops(const workload::Workload& workload, std::int64_t samples);
/// Whether the total is 72 B l s h^2 (1 + s/6h + v/12hl), their eq. (7): without frozen weights, with kv_heads = heads
/// and mlp_hidden = 4 hidden it is.
bool is_equation_7(const workload::Workload& workload);
/// With every block's forward computed again in its backward: Narayanan et al. 2021, eq. (3) where eq. (7) holds.
double flops_with_full_recomputation(const workload::Workload& workload, std::int64_t samples);
/// Of the part that a rank holds. Keys and values of a head that several tensor ranks hold are computed by each, and so
/// are their weights' gradients; their share of the input gradient by the lowest alone.
Flops flops(const workload::Workload& workload, const Holding& holding, std::int64_t samples);

}  // namespace shardproof::predict
