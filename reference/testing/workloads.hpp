// SPDX-License-Identifier: Apache-2.0
// Small workloads that together switch on every option of the model.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "suites/workload/workload.hpp"

namespace shardproof::reference::testing {

/// A hostile little model with these settings over it.
inline workload::Workload small(const std::vector<std::string>& settings = {}) {
  return workload::parse(R"({"layers": 2, "hidden": 6, "heads": 2, "mlp_hidden": 7, "vocab": 11, "sequence": 5,
                             "batch": 3, "initialization": "hostile", "learning_rate": 0.01})",
                         "small", settings);
}

struct Case {
  const char* name;
  std::vector<std::string> settings;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"plain", {}},  // tied head: one gradient from both ends of the model
      {"untied_relu", {"tied_head=false", "activation=relu", "layers=1"}},
      {"smallest", {"layers=1", "hidden=1", "heads=1", "mlp_hidden=1", "sequence=1", "batch=1"}},
      {"shared_block", {"layers=3", "shared_block=[0,2]"}},
      {"grouped", {"hidden=8", "heads=4", "kv_heads=2"}},
      {"one_kv_head", {"hidden=6", "heads=3", "kv_heads=1"}},
      {"dropout", {"dropout=0.3"}},  // four sites
      {"smoothing", {"label_smoothing=0.2"}},
      {"labels", {"valid_labels=[2,0,1]", "prompt=1"}},  // the second sample has no label
      {"documents", {"documents=[2,1]", "sequence=7"}},
      {"window", {"window=2", "sequence=6"}},
      {"unused_frozen", {"unused=[0,5]", "frozen=[\"*norm1*\",\"token_embedding.weight\"]"}},
      {"all",
       {"layers=3", "hidden=8", "heads=4", "kv_heads=2", "mlp_hidden=5", "sequence=7", "shared_block=[1,2]",
        "dropout=0.2", "label_smoothing=0.1", "valid_labels=[3,1,4]", "documents=[4,2]", "window=3", "unused=[3]",
        "frozen=[\"blocks.0.mlp*\"]", "prompt=1", "layer_norm_epsilon=0.1"}},
  };
  return all;
}

}  // namespace shardproof::reference::testing
