// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/layout.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::plan {
namespace {

using Ranges = std::vector<Range>;
using Settings = std::vector<std::string>;
using workload::Workload;

Layout layout_of(std::string_view strategy, const Settings& settings = {}) {
  return layout(workload::load("tiny", settings), parse_strategy(strategy));
}

/// How often each index of a dim is in one of the ranges.
std::vector<int> counts(const Ranges& ranges, std::int64_t whole) {
  std::vector<int> list(static_cast<std::size_t>(whole));
  for (const Range& range : ranges) {
    EXPECT_LE(0, range.begin);
    EXPECT_LE(range.begin, range.end);
    EXPECT_LE(range.end, whole);
    for (std::int64_t k = range.begin; k < range.end; ++k) ++list.at(static_cast<std::size_t>(k));
  }
  return list;
}

void expect_partition(const Ranges& ranges, std::int64_t whole, const std::string& what) {
  EXPECT_EQ(counts(ranges, whole), std::vector<int>(static_cast<std::size_t>(whole), 1)) << what;
}

void expect_heads(const Workload& w, const Layout& plan) {
  Ranges query, owned;
  const std::int64_t group = w.heads / w.kv_heads;
  for (const HeadSlice& slice : plan.heads) {
    query.push_back(slice.query);
    owned.push_back(slice.owned);
    std::vector<int> needed(static_cast<std::size_t>(w.kv_heads));
    for (std::int64_t h = slice.query.begin; h < slice.query.end; ++h)
      needed.at(static_cast<std::size_t>(h / group)) = 1;
    EXPECT_EQ(counts({slice.key}, w.kv_heads), needed);
    EXPECT_LE(slice.key.begin, slice.owned.begin);
    EXPECT_EQ(slice.owned.end, slice.key.end);
  }
  expect_partition(query, w.heads, "query heads");
  expect_partition(owned, w.kv_heads, "owned key heads");
}

void expect_parameter(const ParameterLayout& p, std::int64_t tp, const std::string& where) {
  const std::string what = where + " " + p.parameter.name;
  const std::int64_t whole = p.parameter.dims.at(static_cast<std::size_t>(std::max<std::int64_t>(p.split_dim, 0)));
  ASSERT_EQ(std::ssize(p.held), tp) << what;
  ASSERT_EQ(std::ssize(p.owned), tp) << what;
  expect_partition(p.owned, whole, what);
  for (std::int64_t t = 0; t < tp; ++t) {
    const Range held = p.held[static_cast<std::size_t>(t)], owned = p.owned[static_cast<std::size_t>(t)];
    EXPECT_LE(held.begin, owned.begin) << what;
    EXPECT_GE(held.end, owned.end) << what;
    Dims dims = p.parameter.dims;
    if (p.split_dim >= 0) dims[static_cast<std::size_t>(p.split_dim)] = held.size();
    EXPECT_EQ(p.held_dims(t), dims) << what;
    EXPECT_TRUE(p.split_dim >= 0 || held == (Range{0, whole})) << what;
  }
  ASSERT_FALSE(p.sites.empty()) << what;
  EXPECT_TRUE(std::ranges::is_sorted(p.sites, {}, &Site::stage)) << what;
}

// Every layer has its sites, and nothing else has.
void expect_sites(const Workload& w, const Layout& plan) {
  const auto last = std::ssize(plan.stage_layers) - 1;
  std::vector<std::vector<std::string>> names(static_cast<std::size_t>(w.layers));  // by the layer that uses them
  for (const ParameterLayout& p : plan.parameters)
    for (const Site& site : p.sites) {
      if (site.part.starts_with("blocks.")) {
        const auto layer = std::stoll(site.part.substr(7));
        const Range& layers = plan.stage_layers.at(static_cast<std::size_t>(site.stage));
        EXPECT_TRUE(layers.begin <= layer && layer < layers.end) << p.parameter.name << " at " << site.part;
        names.at(static_cast<std::size_t>(layer)).push_back(p.parameter.name);
      } else {
        EXPECT_EQ(site.stage, site.part == "head" ? last : 0) << p.parameter.name;
      }
    }
  for (std::int64_t layer = 0; layer < w.layers; ++layer) {
    const auto& own = names[static_cast<std::size_t>(layer)];
    EXPECT_EQ(own.size(), 16u) << layer;
    const std::string prefix = "blocks." + std::to_string(workload::parameter_layer(w, layer)) + ".";
    for (const std::string& name : own) EXPECT_TRUE(name.starts_with(prefix)) << name;
  }
}

void expect_sound(const Workload& w, const Strategy& strategy) {
  const std::string where = w.name + " on " + print(strategy) + ":";
  const Layout plan = layout(w, strategy);
  ASSERT_EQ(std::ssize(plan.stage_layers), strategy.pp) << where;
  expect_partition(plan.stage_layers, w.layers, where + " layers");
  for (std::size_t k = 0; k + 1 < plan.stage_layers.size(); ++k)
    EXPECT_EQ(plan.stage_layers[k].end, plan.stage_layers[k + 1].begin) << where;
  ASSERT_EQ(std::ssize(plan.heads), strategy.tp) << where;
  expect_heads(w, plan);
  expect_partition(plan.mlp, w.mlp_hidden, where + " mlp");
  expect_partition(plan.vocab, w.vocab, where + " vocab");
  const auto parameters = workload::parameters(w);
  ASSERT_EQ(plan.parameters.size(), parameters.size()) << where;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const ParameterLayout& p = plan.parameters[k];
    EXPECT_EQ(p.parameter.name, parameters[k].name);
    EXPECT_EQ(p.parameter.dims, parameters[k].dims);
    EXPECT_EQ(p.parameter.decays, parameters[k].decays);
    EXPECT_EQ(p.parameter.trainable, parameters[k].trainable);
    expect_parameter(p, strategy.tp, where);
  }
  expect_sites(w, plan);
  EXPECT_EQ(parse_layout(print(plan)), plan) << where << "\n" << print(plan);
}

TEST(Layout, IsSoundForHostileShapes) {
  const Settings shapes[] = {
      {"layers=1", "heads=1", "kv_heads=1", "hidden=1", "vocab=1", "mlp_hidden=1", "sequence=1"},
      {"layers=7", "heads=5", "kv_heads=5", "hidden=15", "vocab=13", "mlp_hidden=11", "shared_block=1,5"},
      {"layers=3", "heads=6", "kv_heads=2", "hidden=12", "vocab=3", "tied_head=false", "unused=0,7,3"},
      {"layers=5", "heads=4", "kv_heads=1", "hidden=8", "mlp_hidden=2", "shared_block=3,4"},
      {"layers=2", "heads=12", "kv_heads=4", "hidden=12", "frozen=blocks.0.*,final_norm.bias", "decay_group=none"},
  };
  for (const Settings& shape : shapes)
    for (const std::int64_t pp : {1, 2, 3, 4, 8})
      for (const std::int64_t tp : {1, 2, 3, 4, 5, 6, 8})
        expect_sound(workload::load("tiny", shape), {.dp = 2, .pp = pp, .tp = tp});
}

TEST(Layout, IsSoundForRandomWorkloads) {
  for (std::int64_t k = 0; k < 60; ++k)
    expect_sound(workload::random_workload(3, k), {.pp = 1 + k % 5, .tp = 1 + k % 7});
}

TEST(Layout, OneDeviceHoldsEverythingWhole) {
  for (const ParameterLayout& p : layout_of("dp8").parameters) {
    EXPECT_EQ(p.split_dim, -1);
    EXPECT_EQ(p.owned, p.held);
    EXPECT_EQ(p.stages(), std::vector<std::int64_t>{0});
  }
}

// Shoeybi et al. 2019, figure 3: the first linear of a pair is cut by its outputs, the second by its inputs.
TEST(Layout, TensorParallelCutsAreThoseOfMegatron) {
  const Layout plan = layout_of("tp2", {"layers=1", "hidden=6", "heads=3", "mlp_hidden=5", "vocab=7"});
  struct Expected {
    const char* name;
    std::int64_t dim;
    Ranges held;
  };
  const Ranges heads = {{0, 4}, {4, 6}}, mlp = {{0, 3}, {3, 5}}, vocab = {{0, 4}, {4, 7}}, whole = {{0, 6}, {0, 6}};
  for (const Expected& e : std::initializer_list<Expected>{
           {"token_embedding.weight", 0, vocab},
           {"position_embedding.weight", -1, {{0, 9}, {0, 9}}},
           {"blocks.0.norm1.weight", -1, whole},
           {"blocks.0.norm1.bias", -1, whole},
           {"blocks.0.attention.query.weight", 0, heads},
           {"blocks.0.attention.query.bias", 0, heads},
           {"blocks.0.attention.key.weight", 0, heads},
           {"blocks.0.attention.key.bias", 0, heads},
           {"blocks.0.attention.value.weight", 0, heads},
           {"blocks.0.attention.value.bias", 0, heads},
           {"blocks.0.attention.output.weight", 1, heads},
           {"blocks.0.attention.output.bias", -1, whole},
           {"blocks.0.norm2.weight", -1, whole},
           {"blocks.0.norm2.bias", -1, whole},
           {"blocks.0.mlp.up.weight", 0, mlp},
           {"blocks.0.mlp.up.bias", 0, mlp},
           {"blocks.0.mlp.down.weight", 1, mlp},
           {"blocks.0.mlp.down.bias", -1, whole},
           {"final_norm.weight", -1, whole},
           {"final_norm.bias", -1, whole},
       }) {
    EXPECT_EQ(plan[e.name].split_dim, e.dim) << e.name;
    EXPECT_EQ(plan[e.name].held, e.held) << e.name;
  }
  EXPECT_EQ(plan.parameters.size(), 20u);
  EXPECT_FALSE(plan.shares_key_heads());
  const Layout untied = layout_of("tp2", {"tied_head=false", "vocab=7", "unused=5"});
  EXPECT_EQ(untied["head.weight"].split_dim, 0);
  EXPECT_EQ(untied["head.weight"].held, vocab);
  EXPECT_EQ(untied["unused.0"].held, (Ranges{{0, 5}, {0, 5}}));
  EXPECT_EQ(untied["unused.0"].owned, (Ranges{{0, 5}, {5, 5}}));
}

TEST(Layout, FewerKeyHeadsThanRanksAreHeldByThoseThatNeedThem) {
  // Six query heads of two elements in two groups, over four ranks: 2, 2, 1, 1.
  const Layout plan = layout_of("tp4", {"hidden=12", "heads=6", "kv_heads=2"});
  EXPECT_EQ(
      plan.heads,
      (std::vector<HeadSlice>{
          {{0, 2}, {0, 1}, {0, 1}}, {{2, 4}, {0, 2}, {1, 2}}, {{4, 5}, {1, 2}, {2, 2}}, {{5, 6}, {1, 2}, {2, 2}}}));
  EXPECT_TRUE(plan.shares_key_heads());
  const ParameterLayout& key = plan["blocks.0.attention.key.weight"];
  EXPECT_EQ(key.held, (Ranges{{0, 2}, {0, 4}, {2, 4}, {2, 4}}));
  EXPECT_EQ(key.owned, (Ranges{{0, 2}, {2, 4}, {4, 4}, {4, 4}}));
  EXPECT_EQ(key.held_dims(1), (Dims{4, 12}));
  EXPECT_EQ(plan["blocks.0.attention.output.weight"].held_dims(0), (Dims{12, 4}));
}

TEST(Layout, MoreRanksThanHeadsLeaveEmptySlices) {
  const Layout plan = layout_of("tp3", {"hidden=4", "heads=2", "kv_heads=2", "vocab=2"});
  EXPECT_EQ(plan.heads[2], (HeadSlice{{2, 2}, {2, 2}, {2, 2}}));
  EXPECT_FALSE(plan.shares_key_heads());
  EXPECT_EQ(plan["blocks.0.attention.query.weight"].held_dims(2), (Dims{0, 4}));
  EXPECT_EQ(plan["token_embedding.weight"].held_dims(2), (Dims{0, 4}));
}

TEST(Layout, StagesTakeLayersAsTheStrategySays) {
  EXPECT_EQ(layout_of("pp3", {"layers=7"}).stage_layers, (Ranges{{0, 3}, {3, 5}, {5, 7}}));
  EXPECT_EQ(layout_of("pp3 layers=0,6,1", {"layers=7"}).stage_layers, (Ranges{{0, 0}, {0, 6}, {6, 7}}));
  EXPECT_EQ(layout_of("pp3", {"layers=1"}).stage_layers, (Ranges{{0, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(layout_of("pp3 layers=0,6,1", {"layers=7"})["blocks.0.mlp.up.bias"].stages(), std::vector<std::int64_t>{1});
}

TEST(Layout, ParametersStandAtTheirSites) {
  const Layout plan = layout_of("pp3", {"layers=7", "shared_block=1,5", "unused=4"});
  EXPECT_EQ(plan["token_embedding.weight"].sites, (std::vector<Site>{{0, "embedding"}, {2, "head"}}));
  EXPECT_EQ(plan["position_embedding.weight"].sites, (std::vector<Site>{{0, "embedding"}}));
  EXPECT_EQ(plan["blocks.1.mlp.up.weight"].sites, (std::vector<Site>{{0, "blocks.1"}, {2, "blocks.5"}}));
  EXPECT_EQ(plan["blocks.1.mlp.up.weight"].stages(), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(plan["blocks.6.norm1.bias"].sites, (std::vector<Site>{{2, "blocks.6"}}));
  EXPECT_EQ(plan["final_norm.weight"].sites, (std::vector<Site>{{2, "head"}}));
  EXPECT_EQ(plan["unused.0"].sites, (std::vector<Site>{{0, "none"}}));
  EXPECT_THROW(plan["blocks.5.norm1.bias"], InternalError);
  const Layout one = layout_of("tp2", {"layers=7", "shared_block=1,5", "tied_head=false"});
  EXPECT_EQ(one["blocks.1.mlp.up.weight"].sites, (std::vector<Site>{{0, "blocks.1"}, {0, "blocks.5"}}));
  EXPECT_EQ(one["blocks.1.mlp.up.weight"].stages(), std::vector<std::int64_t>{0});
  EXPECT_EQ(one["token_embedding.weight"].sites, (std::vector<Site>{{0, "embedding"}}));
  EXPECT_EQ(one["head.weight"].sites, (std::vector<Site>{{0, "head"}}));
}

TEST(Layout, RefusedStrategiesHaveNone) {
  EXPECT_THROW(layout_of("pp2 layers=1"), NotSupported);
  EXPECT_THROW(layout_of("pp2147483648"), NotSupported);
  EXPECT_THROW(layout_of("tp2147483648"), NotSupported);
}

}  // namespace
}  // namespace shardproof::plan
