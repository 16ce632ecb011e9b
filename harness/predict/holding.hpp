// SPDX-License-Identifier: Apache-2.0
// Who holds what of a model: a stage holds consecutive layers (Huang et al. 2019), a tensor rank a slice of the heads,
// of the MLP's columns and of the vocabulary (Shoeybi et al. 2019, section 3). Strategies are legal for the workload.
#pragma once

#include <cstdint>
#include <span>

#include "harness/predict/shape.hpp"
#include "impl/plan/range.hpp"
#include "impl/plan/strategy.hpp"

namespace shardproof::predict {

/// What a rank holds of one stage. Norms, the biases behind a sum over slices, and position embeddings lie whole on
/// each tensor rank; token embedding, position embedding and unused parameters on the first stage, final norm and head
/// on the last.
struct Holding {
  plan::Range layers;
  bool is_first = true, is_last = true;  ///< stage
  std::int64_t a = 0;                    ///< query heads
  std::int64_t q = 0, k = 0;             ///< widths of its queries, and of the keys (or values) that those read
  std::int64_t k_owned = 0;              ///< of k, what no lower tensor rank holds
  std::int64_t m = 0, v = 0;             ///< columns of the MLP, rows of the vocabulary
  bool tiled = false;                    ///< attention keeps row statistics in place of probabilities
};
/// One device's: everything.
Holding whole(const workload::Workload& workload);
/// That of the stage on tensor coordinate `tp`.
Holding holding(const workload::Workload& workload, const plan::Strategy& strategy, std::int64_t stage,
                std::int64_t tp);

/// Whether a key/value head lies on several tensor ranks: a cut falls inside of its group of query heads.
bool shares_key_heads(const workload::Workload& workload, const plan::Strategy& strategy);

/// A set of parameters, or of the slices that a rank holds of them (an empty slice is a tensor too).
struct Count {
  std::int64_t elements = 0, tensors = 0;
  std::int64_t trainable_elements = 0, trainable_tensors = 0;  ///< not frozen: with gradient and optimizer state
  Count& operator+=(const Count& other);
  Count& operator-=(const Count& other);
};

/// All that is held of these stages, which ascend. A block that two layers share, and a head tied to the embedding,
/// count once.
Count count(const workload::Workload& workload, std::span<const Holding> stages);
Count count(const workload::Workload& workload, const Holding& stage);
/// What its slices have of the block of one layer, and of the token embedding, wherever those lie.
Count count_block(const workload::Workload& workload, const Holding& holding, std::int64_t layer);
Count count_token_embedding(const workload::Workload& workload, const Holding& holding);

/// The stage that holds a layer.
std::int64_t stage_of(const workload::Workload& workload, const plan::Strategy& strategy, std::int64_t layer);

}  // namespace shardproof::predict
