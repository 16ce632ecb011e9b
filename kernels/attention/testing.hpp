// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of this folder: cases, and a run of both kernels on one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof::attention::testing {

struct Case {
  std::string name;
  Shape shape;
  double dropout = 0;
  std::vector<std::int32_t> documents = {};  ///< of each position of a sample, cycled; none: one document

  std::int64_t positions() const { return shape.batch * shape.sequence; }
  std::int64_t hidden() const { return shape.heads * shape.head_size; }
  std::int64_t kv_hidden() const { return shape.kv_heads * shape.head_size; }
  std::vector<std::int32_t> all_documents() const {
    std::vector<std::int32_t> all;
    for (std::int64_t i = 0; i < positions(); ++i) {
      const auto at = static_cast<std::size_t>(i % shape.sequence);
      all.push_back(documents.empty() ? 0 : documents[at % documents.size()]);
    }
    return all;
  }
  /// A site that starts in the middle of its logical tensor.
  dropout::Site site() const { return {dropout, RandomStream(5, "dropout." + name), 977}; }
};

inline std::vector<Case> cases() {
  return {
      {"one_position", {.batch = 3, .sequence = 1, .heads = 2, .kv_heads = 1, .head_size = 1}, 0.5},
      {"plain", {.batch = 2, .sequence = 7, .heads = 3, .kv_heads = 3, .head_size = 5}},
      {"several_blocks", {.batch = 1, .sequence = 131, .heads = 1, .kv_heads = 1, .head_size = 17}, 0.1},
      {"block_edge", {.batch = 1, .sequence = 64, .heads = 2, .kv_heads = 2, .head_size = 8}},
      {"grouped", {.batch = 2, .sequence = 67, .heads = 6, .kv_heads = 2, .head_size = 4}, 0.3},
      {"one_key_head", {.batch = 1, .sequence = 65, .heads = 5, .kv_heads = 1, .head_size = 3}},
      {"window", {.batch = 1, .sequence = 150, .heads = 2, .kv_heads = 2, .head_size = 6, .window = 9}, 0.2},
      {"window_of_one", {.batch = 1, .sequence = 70, .heads = 2, .kv_heads = 1, .head_size = 2, .window = 1}},
      {"wide_window", {.batch = 1, .sequence = 140, .heads = 1, .kv_heads = 1, .head_size = 3, .window = 80}},
      {"documents",
       {.batch = 2, .sequence = 70, .heads = 2, .kv_heads = 2, .head_size = 7},
       0.4,
       {4, 4, 4, 9, 9, 2, 2, 2, 2, 2, 2, 0}},
      {"all_options",
       {.batch = 2, .sequence = 97, .heads = 4, .kv_heads = 2, .head_size = 5, .window = 11},
       0.9,
       {1, 1, 1, 1, 1, 2, 2, 2}},
  };
}

/// Operands by name, uniform within +-spread.
inline std::map<std::string, std::vector<double>> inputs(const Case& c, double spread) {
  const auto draw = [&](const char* name, std::int64_t columns) {
    return shardproof::testing::uniform(17, c.name + name, c.positions() * columns, -spread, spread);
  };
  return {{"q", draw("q", c.hidden())},
          {"k", draw("k", c.kv_hidden())},
          {"v", draw("v", c.kv_hidden())},
          {"d_o", draw("d_o", c.hidden())}};
}

/// Runs both kernels; backward after a forward that did not overflow.
template <class S>
struct Candidate {
  Candidate(Queue& queue, const Case& c, const std::map<std::string, std::vector<double>>& x) {
    const auto& s = c.shape;
    const Dims wide{c.positions(), c.hidden()}, narrow{c.positions(), c.kv_hidden()};
    const Dims scores{s.batch, s.heads, s.sequence, s.sequence};
    const auto empty = [&](const char* name, const Dims& dims, Dtype dtype) {
      return Tensor(queue, {name, dtype, dims, Category::activation});
    };
    constexpr auto dtype = dtype_of<S>();
    q = shardproof::testing::make(queue, "q", wide, x.at("q"), dtype);
    k = shardproof::testing::make(queue, "k", narrow, x.at("k"), dtype);
    v = shardproof::testing::make(queue, "v", narrow, x.at("v"), dtype);
    d_o = shardproof::testing::make(queue, "d_o", wide, x.at("d_o"), dtype);
    documents = empty("documents", {c.positions()}, Dtype::i32);
    upload<std::int32_t>(queue, documents, c.all_documents());
    saved.probability = empty("probability", scores, dtype);
    const auto site = c.site();
    if (c.dropout > 0) {
      saved.mask = empty("mask", scores, Dtype::u8);
      saved.dropped = empty("dropped", scores, dtype);
    }
    o = empty("o", wide, dtype);
    dq = empty("dq", wide, dtype);
    dk = empty("dk", narrow, dtype);
    dv = empty("dv", narrow, dtype);
    forward(queue, s, q, k, v, documents, c.dropout > 0 ? &site : nullptr, saved, o);
    if (fetch_overflow(queue, o)) return;
    backward(queue, s, d_o, q, k, v, documents, o, saved, c.dropout, dq, dk, dv);
  }

  Tensor q, k, v, d_o, documents, o, dq, dk, dv;
  Saved saved;
};

}  // namespace shardproof::attention::testing
