// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of this folder: cases, and a run of both kernels on one, whole or in slices of its heads.
#pragma once

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention/tiled.hpp"
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
  /// Heads begin..end-1 of this case of all heads.
  Case slice(std::int64_t begin, std::int64_t end) const {
    Case part = *this;
    auto& s = part.shape;
    s.first_head = begin;
    s.heads = end - begin;
    s.total_heads = shape.heads;
    s.group = shape.heads / shape.kv_heads;
    s.kv_heads = begin == end ? 0 : (end - 1) / s.group - begin / s.group + 1;
    return part;
  }
  /// A site that starts in the middle of its logical tensor.
  dropout::Site site() const { return {dropout, RandomStream(5, "dropout." + name), 977}; }
};

/// Whether probabilities are kept, or made again from row statistics.
enum class Form { stored, tiled };
inline std::string name_of(Form form) { return form == Form::stored ? "stored" : "tiled"; }

inline std::vector<Case> cases() {
  std::vector<std::int32_t> own_document(67);
  std::iota(own_document.begin(), own_document.end(), 0);
  std::vector<std::int32_t> long_documents(200, 1);  // the last tiles see nothing of the first ones
  std::fill_n(long_documents.begin(), 70, 0);
  return {
      {"no_sample", {.batch = 0, .sequence = 5, .heads = 2, .kv_heads = 1, .head_size = 3}, 0.5},
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
      {"last_key_of_a_tile", {.batch = 1, .sequence = 127, .heads = 1, .kv_heads = 1, .head_size = 16}, 0.2},
      {"whole_tiles", {.batch = 1, .sequence = 128, .heads = 1, .kv_heads = 1, .head_size = 33}},
      {"first_key_of_a_tile", {.batch = 1, .sequence = 129, .heads = 2, .kv_heads = 1, .head_size = 16}},
      {"window_below_a_tile", {.batch = 1, .sequence = 139, .heads = 1, .kv_heads = 1, .head_size = 5, .window = 63}},
      {"window_of_a_tile", {.batch = 1, .sequence = 193, .heads = 1, .kv_heads = 1, .head_size = 8, .window = 64}, 0.1},
      {"window_above_a_tile", {.batch = 1, .sequence = 131, .heads = 1, .kv_heads = 1, .head_size = 5, .window = 65}},
      {"wider_than_the_sequence",
       {.batch = 1, .sequence = 66, .heads = 1, .kv_heads = 1, .head_size = 2, .window = 99}},
      {"documents_of_one", {.batch = 1, .sequence = 67, .heads = 1, .kv_heads = 1, .head_size = 3}, 0.5, own_document},
      {"long_documents", {.batch = 1, .sequence = 200, .heads = 1, .kv_heads = 1, .head_size = 4}, 0.0, long_documents},
      {"documents_that_return",
       {.batch = 1, .sequence = 131, .heads = 1, .kv_heads = 1, .head_size = 4},
       0.0,
       {0, 1, 1}},
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
  Candidate(Queue& queue, const Case& c, const std::map<std::string, std::vector<double>>& x,
            Form form = Form::stored) {
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
    const auto own_site = c.site();
    const auto* const site = c.dropout > 0 ? &own_site : nullptr;
    if (form == Form::tiled) {
      for (auto* t : {&statistics.max, &statistics.sum}) *t = empty("statistic", {s.batch, s.heads, s.sequence}, dtype);
    } else {
      saved.probability = empty("probability", scores, dtype);
    }
    if (form == Form::stored && site != nullptr) {
      saved.mask = empty("mask", scores, Dtype::u8);
      saved.dropped = empty("dropped", scores, dtype);
    }
    o = empty("o", wide, dtype);
    dq = empty("dq", wide, dtype);
    dk_sum = Accumulator(queue, {"dk", dtype, narrow, Category::activation});
    dv_sum = Accumulator(queue, {"dv", dtype, narrow, Category::activation});
    if (form == Form::tiled) {
      tiled_forward(queue, s, q, k, v, documents, site, statistics, o);
    } else {
      forward(queue, s, q, k, v, documents, site, saved, o);
    }
    if (fetch_overflow(queue, o)) return;
    if (form == Form::tiled) {
      tiled_backward(queue, s, d_o, q, k, v, documents, site, o, statistics, dq, dk_sum, dv_sum);
    } else {
      backward(queue, s, d_o, q, k, v, documents, o, saved, c.dropout, dq, dk_sum, dv_sum);
    }
    dk = dk_sum.finish(queue);
    dv = dv_sum.finish(queue);
  }

  Tensor q, k, v, d_o, documents, o, dq, dk, dv;  ///< dk and dv: empty after an overflow in forward
  Saved saved;                                    ///< stored
  RowStatistics statistics;                       ///< tiled
  Accumulator dk_sum, dv_sum;
};

/// Where slices of so many heads begin and end: from one to five, uneven, some empty, some across groups.
inline std::vector<std::vector<std::int64_t>> slicings(std::int64_t heads) {
  std::vector<std::vector<std::int64_t>> all{{0, heads / 3, heads / 3, heads - heads / 6, heads}};
  for (std::int64_t slices = 1; slices <= 5; ++slices) {
    auto& cuts = all.emplace_back();
    for (std::int64_t i = 0; i <= slices; ++i) cuts.push_back(heads * i / slices);
  }
  return all;
}

/// A case run slice by slice, the results put together as ranks do: dk and dv by sums.
template <class S>
struct Joined {
  Joined(Queue& queue, const Case& c, const std::map<std::string, std::vector<double>>& x,
         const std::vector<std::int64_t>& cuts, Form form = Form::stored) {
    const auto& s = c.shape;
    const auto square = s.sequence * s.sequence;
    for (auto* wide : {&o, &dq}) wide->resize(x.at("q").size());
    for (auto* narrow : {&dk, &dv}) narrow->resize(x.at("k").size());
    probability.resize(static_cast<std::size_t>(s.batch * s.heads * square));
    dropped.resize(c.dropout > 0 ? probability.size() : 0);
    mask.resize(dropped.size());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const Case part = c.slice(cuts[i], cuts[i + 1]);
      const auto& p = part.shape;
      const Part wide{c.hidden(), cuts[i] * s.head_size, part.hidden()};
      const Part narrow{c.kv_hidden(), cuts[i] / p.group * s.head_size, part.kv_hidden()};
      const Part scores{s.heads * square, cuts[i] * square, p.heads * square};
      const Candidate<S> run(queue, part,
                             {{"q", wide.of(x.at("q"))},
                              {"k", narrow.of(x.at("k"))},
                              {"v", narrow.of(x.at("v"))},
                              {"d_o", wide.of(x.at("d_o"))}},
                             form);
      wide.add(fetch<S>(queue, run.o), o);
      wide.add(fetch<S>(queue, run.dq), dq);
      narrow.add(fetch<S>(queue, run.dk), dk);
      narrow.add(fetch<S>(queue, run.dv), dv);
      if (form == Form::tiled) continue;
      scores.add(fetch<S>(queue, run.saved.probability), probability);
      if (c.dropout == 0) continue;
      scores.add(fetch<std::uint8_t>(queue, run.saved.mask), mask);
      scores.add(fetch<S>(queue, run.saved.dropped), dropped);
    }
  }

  std::vector<S> o, dq, dk, dv, probability, dropped;  ///< the last two and mask: of stored
  std::vector<std::uint8_t> mask;

 private:
  /// Columns first..first+count-1 of a matrix.
  struct Part {
    std::int64_t columns, first, count;

    std::vector<double> of(const std::vector<double>& whole) const {
      std::vector<double> part;
      for (auto row = whole.begin(); row != whole.end(); row += columns) {
        part.insert(part.end(), row + first, row + first + count);
      }
      return part;
    }
    template <class T>
    void add(const std::vector<T>& part, std::vector<T>& whole) const {
      for (std::size_t i = 0; i < part.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / count, column = static_cast<std::int64_t>(i) % count;
        auto& to = whole.at(static_cast<std::size_t>(row * columns + first + column));
        if constexpr (std::is_same_v<T, Fixed>) {
          to.raw += part[i].raw;
        } else {
          to = static_cast<T>(to + part[i]);
        }
      }
    }
  };
};

}  // namespace shardproof::attention::testing
