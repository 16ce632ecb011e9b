// SPDX-License-Identifier: Apache-2.0
// Token and position embeddings (ARITHMETIC.md, sections 5 and 7).
#pragma once

#include <span>

#include "reference/arithmetic.hpp"

namespace shardproof::reference {

/// y[i] = token_embedding[tokens[i]] + position_embedding[i]
template <class S>
Array<S> embed(Arithmetic<S>& arithmetic, std::span<const std::int32_t> tokens, const Array<S>& token_embedding,
               const Array<S>& position_embedding);

/// The gradients of both tables += dy's rows.
template <class S>
void embed_weight(std::span<const std::int32_t> tokens, const Array<S>& dy, Array<Sum<S>>& token_embedding,
                  Array<Sum<S>>& position_embedding);

}  // namespace shardproof::reference
