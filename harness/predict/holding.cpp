// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/holding.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace shardproof::predict {
namespace {

plan::Range layers_of(const workload::Workload& w, const plan::Strategy& s, std::int64_t stage) {
  if (s.layers.empty()) return plan::part_of(w.layers, schedule_shape(s).stages(), stage);
  const auto at = s.layers.begin() + stage;
  const std::int64_t begin = std::accumulate(s.layers.begin(), at, std::int64_t{0});
  return {begin, begin + *at};
}

/// Whether the first query head of a slice reads a key head that the slice before it reads too.
bool begins_inside_group(const Shape& w, const plan::Range& heads) {
  return heads.size() > 0 && heads.begin % w.g != 0;
}

class Tally {
 public:
  explicit Tally(const workload::Workload& workload) : workload_(workload) {}

  void add(const std::string& name, std::int64_t elements) {
    total_.elements += elements, ++total_.tensors;
    if (is_frozen(workload_, name)) return;
    total_.trainable_elements += elements, ++total_.trainable_tensors;
  }
  void add_pair(const std::string& prefix, std::int64_t weight, std::int64_t bias) {
    add(prefix + ".weight", weight);
    add(prefix + ".bias", bias);
  }
  void add_block(const Shape& w, const Holding& o, std::int64_t layer) {
    const std::string block = "blocks." + std::to_string(w.owner(layer));
    add_pair(block + ".norm1", w.h, w.h);
    add_pair(block + ".attention.query", o.q * w.h, o.q);
    add_pair(block + ".attention.key", o.k * w.h, o.k);
    add_pair(block + ".attention.value", o.k * w.h, o.k);
    add_pair(block + ".attention.output", w.h * o.q, w.h);
    add_pair(block + ".norm2", w.h, w.h);
    add_pair(block + ".mlp.up", o.m * w.h, o.m);
    add_pair(block + ".mlp.down", w.h * o.m, w.h);
  }
  const Count& total() const { return total_; }

 private:
  const workload::Workload& workload_;
  Count total_;
};

}  // namespace

Count& Count::operator+=(const Count& other) {
  elements += other.elements, tensors += other.tensors;
  trainable_elements += other.trainable_elements, trainable_tensors += other.trainable_tensors;
  return *this;
}

Count& Count::operator-=(const Count& other) {
  elements -= other.elements, tensors -= other.tensors;
  trainable_elements -= other.trainable_elements, trainable_tensors -= other.trainable_tensors;
  return *this;
}

Holding whole(const workload::Workload& workload) { return holding(workload, plan::Strategy{}, 0, 0); }

Holding holding(const workload::Workload& workload, const plan::Strategy& strategy, std::int64_t stage,
                std::int64_t tp) {
  const Shape w(workload);
  const plan::Range heads = plan::part_of(w.a, strategy.tp, tp);
  const std::int64_t end = (heads.end + w.g - 1) / w.g;
  const std::int64_t key_heads = heads.size() > 0 ? end - heads.begin / w.g : 0;
  return {.layers = layers_of(workload, strategy, stage),
          .is_first = stage == 0,
          .is_last = stage == schedule_shape(strategy).stages() - 1,
          .a = heads.size(),
          .q = heads.size() * w.d,
          .k = key_heads * w.d,
          .k_owned = (key_heads - (begins_inside_group(w, heads) ? 1 : 0)) * w.d,
          .m = plan::part_of(w.m, strategy.tp, tp).size(),
          .v = plan::part_of(w.v, strategy.tp, tp).size(),
          .tiled = strategy.attention == "tiled"};
}

bool shares_key_heads(const workload::Workload& workload, const plan::Strategy& strategy) {
  const Shape w(workload);
  for (std::int64_t t = 1; t < std::min(strategy.tp, w.a); ++t) {
    if (begins_inside_group(w, plan::part_of(w.a, strategy.tp, t))) return true;
  }
  return false;
}

Count count(const workload::Workload& workload, std::span<const Holding> stages) {
  const Shape w(workload);
  Tally tally(workload);
  bool has_embedding = false, has_shared_block = false;
  for (const Holding& stage : stages) {
    if (stage.is_first || (stage.is_last && workload.tied_head && !has_embedding))
      tally.add("token_embedding.weight", stage.v * w.h);
    if (stage.is_first) {
      has_embedding = true;
      tally.add("position_embedding.weight", w.s * w.h);
      for (std::size_t i = 0; i < workload.unused.size(); ++i)
        tally.add("unused." + std::to_string(i), workload.unused[i]);
    }
    for (std::int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
      if (layer == w.second_site && has_shared_block) continue;
      has_shared_block = has_shared_block || layer == w.first_site;
      tally.add_block(w, stage, layer);
    }
    if (stage.is_last) {
      tally.add_pair("final_norm", w.h, w.h);
      if (!workload.tied_head) tally.add("head.weight", stage.v * w.h);
    }
  }
  return tally.total();
}

Count count(const workload::Workload& workload, const Holding& stage) { return count(workload, {&stage, 1}); }

Count count_block(const workload::Workload& workload, const Holding& holding, std::int64_t layer) {
  Tally tally(workload);
  tally.add_block(Shape(workload), holding, layer);
  return tally.total();
}

Count count_token_embedding(const workload::Workload& workload, const Holding& holding) {
  Tally tally(workload);
  tally.add("token_embedding.weight", holding.v * workload.hidden);
  return tally.total();
}

std::int64_t stage_of(const workload::Workload& workload, const plan::Strategy& strategy, std::int64_t layer) {
  std::int64_t stage = 0;
  while (layers_of(workload, strategy, stage).end <= layer) ++stage;
  return stage;
}

}  // namespace shardproof::predict
