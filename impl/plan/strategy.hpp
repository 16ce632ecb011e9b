// SPDX-License-Identifier: Apache-2.0
// How a workload is spread over ranks. One table of keys serves parsing, printing, errors and lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::plan {

/// "dp1 microbatches=4": sizes of mesh axes are written NAMEsize, all other keys NAME=value.
struct Strategy {
  std::int64_t dp = 1;            ///< ranks that see different samples
  std::int64_t microbatches = 1;  ///< parts that a rank's share of the batch is accumulated over

  /// Ranks of the mesh.
  std::int64_t ranks() const { return dp; }
  bool operator==(const Strategy&) const = default;
};

/// Throws BadInput with every finding, one a line: unknown keys (with the nearest one), doubled keys, wrong values.
/// Throws NotSupported: legal, but refused by name.
Strategy parse_strategy(std::string_view text);

/// The canonical form: the table's order, defaults left out, "dp1" when nothing is left. Parses back.
std::string print(const Strategy& strategy);

struct StrategyKey {
  std::string name, values, standard, meaning;
  bool program;  ///< changes what the oracle computes; otherwise it must not change a bit
};
std::vector<StrategyKey> strategy_keys();

}  // namespace shardproof::plan
