// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/shape.hpp"

#include <algorithm>
#include <string>

namespace shardproof::predict {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*') {
    return !name.empty() && name.front() == pattern.front() && matches(pattern.substr(1), name.substr(1));
  }
  for (std::size_t skip = 0; skip <= name.size(); ++skip) {
    if (matches(pattern.substr(1), name.substr(skip))) return true;
  }
  return false;
}

}  // namespace

Shape::Shape(const workload::Workload& workload)
    : l(workload.layers),
      s(workload.sequence),
      h(workload.hidden),
      a(workload.heads),
      k(workload.kv_heads > 0 ? workload.kv_hidden() : workload.hidden),
      m(workload.mlp_hidden > 0 ? workload.mlp_hidden : 4 * workload.hidden),
      v(workload.vocab),
      shared(!workload.shared_block.empty()) {}

bool is_frozen(const workload::Workload& workload, std::string_view name) {
  return std::any_of(workload.frozen.begin(), workload.frozen.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

std::int64_t frozen_count(const workload::Workload& workload) {
  if (workload.frozen.empty()) return 0;
  const Shape w(workload);
  std::int64_t total = 0;
  const auto add = [&](const std::string& name, std::int64_t elements) {
    if (is_frozen(workload, name)) total += elements;
  };
  const auto add_pair = [&](const std::string& prefix, std::int64_t weight, std::int64_t bias) {
    add(prefix + ".weight", weight);
    add(prefix + ".bias", bias);
  };
  add("token_embedding.weight", w.v * w.h);
  add("position_embedding.weight", w.s * w.h);
  for (std::int64_t layer = 0; layer < w.l; ++layer) {
    if (w.shared && layer == workload.shared_block.at(1)) continue;
    const std::string block = "blocks." + std::to_string(layer);
    add_pair(block + ".norm1", w.h, w.h);
    add_pair(block + ".attention.query", w.h * w.h, w.h);
    add_pair(block + ".attention.key", w.k * w.h, w.k);
    add_pair(block + ".attention.value", w.k * w.h, w.k);
    add_pair(block + ".attention.output", w.h * w.h, w.h);
    add_pair(block + ".norm2", w.h, w.h);
    add_pair(block + ".mlp.up", w.m * w.h, w.m);
    add_pair(block + ".mlp.down", w.h * w.m, w.h);
  }
  add_pair("final_norm", w.h, w.h);
  if (!workload.tied_head) add("head.weight", w.v * w.h);
  for (std::size_t i = 0; i < workload.unused.size(); ++i) add("unused." + std::to_string(i), workload.unused[i]);
  return total;
}

}  // namespace shardproof::predict
