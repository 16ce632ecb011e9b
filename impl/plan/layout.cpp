// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/layout.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

// What tp cuts a dim by.
enum class Cut : std::uint8_t { query, key, mlp, vocab };

struct Rule {
  std::string_view suffix;  // of the parameter's name
  Cut cut;
  std::int64_t dim;
};

// Shoeybi et al. 2019, section 3: a column-parallel linear is cut by its outputs, the row-parallel one behind it by its
// inputs; embedding and head by the vocabulary. What is not named here is held whole.
constexpr Rule rules[] = {
    {"attention.query.weight", Cut::query, 0},
    {"attention.query.bias", Cut::query, 0},
    {"attention.key.weight", Cut::key, 0},
    {"attention.key.bias", Cut::key, 0},
    {"attention.value.weight", Cut::key, 0},
    {"attention.value.bias", Cut::key, 0},
    {"attention.output.weight", Cut::query, 1},
    {"mlp.up.weight", Cut::mlp, 0},
    {"mlp.up.bias", Cut::mlp, 0},
    {"mlp.down.weight", Cut::mlp, 1},
    {"token_embedding.weight", Cut::vocab, 0},
    {"head.weight", Cut::vocab, 0},
};

Range scaled(const Range& range, std::int64_t factor) { return {range.begin * factor, range.end * factor}; }

std::vector<HeadSlice> heads_of(const workload::Workload& w, std::int64_t tp) {
  const std::int64_t queries_per_key = w.heads / w.kv_heads;
  std::vector<HeadSlice> heads;
  std::int64_t held_by_lower = 0;  // key/value heads
  for (std::int64_t t = 0; t < tp; ++t) {
    const Range query = part_of(w.heads, tp, t);
    // part_of puts empty parts at the end, so an empty slice of queries needs the empty slice behind the last key head.
    const Range key{query.begin / queries_per_key, (query.end + queries_per_key - 1) / queries_per_key};
    heads.push_back({query, key, {std::max(key.begin, held_by_lower), key.end}});
    held_by_lower = key.end;
  }
  return heads;
}

std::vector<Range> parts_of(std::int64_t n, std::int64_t parts) {
  std::vector<Range> ranges;
  for (std::int64_t k = 0; k < parts; ++k) ranges.push_back(part_of(n, parts, k));
  return ranges;
}

class Planner {
 public:
  Planner(const workload::Workload& workload, const Strategy& strategy) : w_(workload), tp_(strategy.tp) {
    layout_.stage_layers = stage_layers(w_, strategy);
    layout_.heads = heads_of(w_, tp_);
    layout_.mlp = parts_of(w_.mlp_hidden, tp_);
    layout_.vocab = parts_of(w_.vocab, tp_);
    // A shared block stands at both of its layers.
    std::int64_t stage = 0;
    for (std::int64_t layer = 0; layer < w_.layers; ++layer) {
      while (layer >= layout_.stage_layers[static_cast<std::size_t>(stage)].end) ++stage;
      layer_sites_[static_cast<std::size_t>(workload::parameter_layer(w_, layer))].push_back(
          {stage, fmt::format("blocks.{}", layer)});
    }
  }

  Layout plan() {
    for (workload::Parameter& parameter : workload::parameters(w_)) {
      ParameterLayout p{std::move(parameter), {}, -1, {}, {}};
      p.sites = sites_of(p.parameter.name);
      const auto rule =
          std::ranges::find_if(rules, [&](const Rule& r) { return tp_ > 1 && p.parameter.name.ends_with(r.suffix); });
      if (rule == std::end(rules)) {
        const std::int64_t whole = p.parameter.dims.front();
        p.held.assign(static_cast<std::size_t>(tp_), {0, whole});
        p.owned.assign(static_cast<std::size_t>(tp_), {whole, whole});
        p.owned.front() = {0, whole};
      } else {
        p.split_dim = rule->dim;
        cut(rule->cut, p);
      }
      layout_.parameters.push_back(std::move(p));
    }
    return std::move(layout_);
  }

 private:
  std::vector<Site> sites_of(const std::string& name) const {
    const std::int64_t last = static_cast<std::int64_t>(layout_.stage_layers.size()) - 1;
    if (name.starts_with("blocks.")) return layer_sites_[static_cast<std::size_t>(std::stoll(name.substr(7)))];
    if (name.starts_with("unused.")) return {{0, "none"}};
    if (name == "position_embedding.weight") return {{0, "embedding"}};
    if (name != "token_embedding.weight") return {{last, "head"}};
    return w_.tied_head ? std::vector<Site>{{0, "embedding"}, {last, "head"}} : std::vector<Site>{{0, "embedding"}};
  }

  void cut(Cut cut, ParameterLayout& p) const {
    const std::int64_t head = w_.head_size();
    for (std::size_t t = 0; t < static_cast<std::size_t>(tp_); ++t) {
      const HeadSlice& heads = layout_.heads[t];
      switch (cut) {
        case Cut::query: p.held.push_back(scaled(heads.query, head)); break;
        case Cut::key: p.held.push_back(scaled(heads.key, head)); break;
        case Cut::mlp: p.held.push_back(layout_.mlp[t]); break;
        case Cut::vocab: p.held.push_back(layout_.vocab[t]); break;
      }
      p.owned.push_back(cut == Cut::key ? scaled(heads.owned, head) : p.held.back());
    }
  }

  const workload::Workload& w_;
  std::int64_t tp_;
  Layout layout_;
  std::vector<std::vector<Site>> layer_sites_{static_cast<std::size_t>(w_.layers)};
};

}  // namespace

std::vector<Range> stage_layers(const workload::Workload& w, const Strategy& s) {
  std::vector<Range> stages;
  const std::int64_t count = schedule_shape(s).stages();
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t begin = stages.empty() ? 0 : stages.back().end;
    stages.push_back(std::ssize(s.layers) != count ? part_of(w.layers, count, k)
                                                   : Range{begin, begin + s.layers[static_cast<std::size_t>(k)]});
  }
  return stages;
}

std::vector<std::int64_t> ParameterLayout::stages() const {
  std::vector<std::int64_t> stages;
  for (const Site& site : sites) stages.push_back(site.stage);
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

Dims ParameterLayout::held_dims(std::int64_t t) const {
  Dims dims = parameter.dims;
  if (split_dim >= 0) dims[static_cast<std::size_t>(split_dim)] = held[static_cast<std::size_t>(t)].size();
  return dims;
}

bool ParameterLayout::operator==(const ParameterLayout& other) const {
  const auto parts = [](const ParameterLayout& p) {
    const workload::Parameter& q = p.parameter;
    return std::tie(q.name, q.dims, q.decays, q.trainable, p.sites, p.split_dim, p.held, p.owned);
  };
  return parts(*this) == parts(other);
}

bool Layout::shares_key_heads() const {
  return std::ranges::any_of(heads, [](const HeadSlice& slice) { return slice.key != slice.owned; });
}

const ParameterLayout& Layout::operator[](std::string_view name) const {
  const auto found =
      std::ranges::find(parameters, name, [](const auto& p) -> std::string_view { return p.parameter.name; });
  if (found == parameters.end()) throw InternalError("layout: no parameter " + std::string(name));
  return *found;
}

Layout layout(const workload::Workload& workload, const Strategy& strategy) {
  require_legal(strategy, workload);
  // Ranges by rank and parameter: 16 parameters a block, held and owned.
  constexpr std::int64_t most = std::int64_t{1} << 27;
  if (schedule_shape(strategy).stages() > most || strategy.tp > most / (32 * (workload.layers + 1)))
    throw NotSupported(fmt::format("a layout of {} layers over pp{} tp{} has more than {} entries", workload.layers,
                                   strategy.pp, strategy.tp, most));
  return Planner(workload, strategy).plan();
}

}  // namespace shardproof::plan
