// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/shape.hpp"

#include <algorithm>
#include <string>

#include "suites/workload/text.hpp"

namespace shardproof::predict {

Shape::Shape(const workload::Workload& workload)
    : l(workload.layers),
      s(workload.sequence),
      h(workload.hidden),
      a(workload.heads),
      d(workload.head_size()),
      g(workload.kv_heads > 0 ? workload.heads / workload.kv_heads : 1),
      k(workload.kv_heads > 0 ? workload.kv_hidden() : workload.hidden),
      m(workload.mlp_hidden > 0 ? workload.mlp_hidden : 4 * workload.hidden),
      v(workload.vocab) {
  if (!workload.shared_block.empty())
    first_site = workload.shared_block.at(0), second_site = workload.shared_block.at(1);
}

bool is_frozen(const workload::Workload& workload, std::string_view name) {
  return std::any_of(workload.frozen.begin(), workload.frozen.end(),
                     [&](const std::string& pattern) { return workload::matches(pattern, name); });
}

}  // namespace shardproof::predict
