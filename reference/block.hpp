// SPDX-License-Identifier: Apache-2.0
// One block of the model on one sample (ARITHMETIC.md, sections 5, 7 and 11).
#pragma once

#include <string>

#include "reference/attention.hpp"
#include "reference/layer_norm.hpp"
#include "reference/parameters.hpp"

namespace shardproof::reference {

/// What a block is told beside its input.
template <class S>
struct BlockSite {
  std::string prefix;  ///< of its parameters' names: "blocks.L."
  AttentionShape attention;
  Dropout<S> attention_probability, attention_output, mlp_output;
};

/// What forward leaves for the backward actions.
template <class S>
struct BlockSaved {
  NormSaved<S> norm1, norm2;
  AttentionSaved<S> attention;
  Array<S> norm1_output, norm2_output, up_output, activation_output;
};

/// What the input gradient leaves for the weight gradient: the gradients of the outputs of the block's maps and norms.
template <class S>
struct BlockGradient {
  Array<S> norm1, norm2, attention_output, up, down;
  AttentionGradient<S> attention;
};

template <class S>
Array<S> block(Arithmetic<S>& arithmetic, const workload::Workload& workload, const Parameters<S>& parameters,
               const BlockSite<S>& site, const Array<S>& x, BlockSaved<S>& saved);

/// dx
template <class S>
Array<S> block_input(Arithmetic<S>& arithmetic, const workload::Workload& workload, const Parameters<S>& parameters,
                     const BlockSite<S>& site, const BlockSaved<S>& saved, const Array<S>& dy,
                     BlockGradient<S>& gradient);

/// Adds to the gradients of the block's parameters.
template <class S>
void block_weight(Arithmetic<S>& arithmetic, const BlockSite<S>& site, const BlockSaved<S>& saved,
                  const BlockGradient<S>& gradient, Parameters<S>& parameters);

}  // namespace shardproof::reference
