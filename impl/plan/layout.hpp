// SPDX-License-Identifier: Apache-2.0
// Where every parameter lives: computed once from workload and strategy; initialisation, gathering, reduce groups,
// clipping, memory forms and error messages derive from it, and no technique names a group itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "impl/plan/mesh.hpp"
#include "impl/plan/range.hpp"
#include "impl/plan/strategy.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::plan {

/// One use of a parameter.
struct Site {
  std::int64_t stage;
  std::string part;  ///< "embedding", "blocks.3", "head"; "none" for a parameter that is used nowhere
  bool operator==(const Site&) const = default;
};

struct ParameterLayout {
  workload::Parameter parameter;  ///< logical: name, dims, decay group, trainable
  std::vector<Site> sites;        ///< ascending by stage, then in the order of use; that of the first is primary
  std::int64_t split_dim = -1;    ///< the dim that tp cuts; -1: every tp rank holds all of it
  /// By tp coordinate, along split_dim (along dim 0 where nothing is split): what a rank holds, and what it counts in
  /// norms, digests and saved files. Held ranges overlap where several ranks need the same key/value head; owned ones
  /// never do, and together they are the whole dim (on tp rank 0 where nothing is split).
  std::vector<Range> held, owned;

  /// Stages that hold a copy, ascending. Its local gradients are parts of one sum where there is more than one
  /// ("partial" over pp: a tied embedding, a shared block on two stages).
  std::vector<std::int64_t> stages() const;
  /// Whether tp ranks hold copies of what another one owns, beside slices of their own.
  bool overlaps() const { return split_dim >= 0 && held != owned; }
  /// Dims of the slice that tp coordinate t holds.
  Dims held_dims(std::int64_t t) const;
  bool operator==(const ParameterLayout& other) const;
};

/// Heads by tp coordinate (Shoeybi et al. 2019, section 3: attention is cut by heads; with fewer key/value heads than
/// ranks, or a cut inside of a group, ranks hold copies).
struct HeadSlice {
  Range query;  ///< query heads
  Range key;    ///< the key/value heads that those need
  Range owned;  ///< of `key`, those that no lower rank holds
  bool operator==(const HeadSlice&) const = default;
};

/// Layers of each stage of the strategy.
std::vector<Range> stage_layers(const workload::Workload& workload, const Strategy& strategy);

struct Layout {
  std::vector<Range> stage_layers;  ///< by stage; stage 0 also holds the embedding, the last one final norm and head
  std::vector<HeadSlice> heads;     ///< by tp coordinate
  std::vector<Range> mlp, vocab;    ///< by tp coordinate: columns of the MLP, rows of the embedding
  std::vector<ParameterLayout> parameters;  ///< in the order of workload::parameters()

  /// Whether several tp ranks hold the same key/value head: its gradients are then summed over tp before their use.
  bool shares_key_heads() const;
  const ParameterLayout& operator[](std::string_view name) const;  ///< throws InternalError
  bool operator==(const Layout&) const = default;
};

/// Throws NotSupported for a strategy that refusals() refuses, and for more than 2^27 ranges in all.
Layout layout(const workload::Workload& workload, const Strategy& strategy);

/// A table of text: the ranges of layers, heads, columns and vocabulary, then one parameter a line. It parses back to
/// the same layout, parameters' decay group and trainability included.
std::string print(const Layout& layout);
/// Throws BadInput with line, column and every error: of form, and of ranges that do not fit together.
Layout parse_layout(std::string_view text);

}  // namespace shardproof::plan
