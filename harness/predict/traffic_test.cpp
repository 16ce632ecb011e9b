// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/traffic.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "harness/predict/testing.hpp"
#include "impl/plan/layout.hpp"
#include "impl/plan/plan.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::predict {

void PrintTo(const TrafficTable& table, std::ostream* out) {
  for (const auto& [key, t] : table)
    *out << "\n  " << key.axis << ' ' << key.kind << ' ' << key.purpose << ": " << t.calls << " calls, payload "
         << t.payload_bytes << ", wire " << t.wire_bytes;
}

namespace {

using plan::Strategy;
using workload::Workload;

/// One rank of a run, call by call, along the layout's table: what the forms must add up to.
class Walk {
 public:
  Walk(const Workload& w, const Strategy& s, Track track, std::int64_t samples, TrafficTable& table)
      : w_(w), s_(s), track_(track), samples_(samples), plan_(plan::make_plan(w, s)), table_(table) {}

  void rank(Rank rank) {
    place_ = plan::place_of(mesh_of(s_), rank);
    all_reduce("dp", "label_count", s_.dp, place_.dp, 1, 8);
    for (const auto& action : plan_.actions(place_.pp)) {
      if (action.kind != plan::ActionKind::forward) continue;
      const auto part =
          plan::part_of(samples_, s_.dp * s_.microbatches, place_.dp * s_.microbatches + action.microbatch);
      microbatch(action.stage, action.microbatch, part.size() * w_.sequence);
    }
    for (const auto& p : plan_.layout.parameters) gradient(p);
    const std::int64_t words = track_ == Track::exact ? 4 : 1, me = static_cast<std::int64_t>(rank);
    all_reduce("world", "gradient_norm", s_.ranks(), me, words, 8);
    all_reduce("world", "loss", s_.ranks(), me, words, 8);
    all_reduce("world", "overflow", s_.ranks(), me, 1, 4);
  }

 private:
  std::int64_t scalar() const { return track_ == Track::native ? 4 : 8; }

  // Its own part from all others, then theirs.
  void all_reduce(const std::string& axis, const std::string& purpose, std::int64_t n, std::int64_t place,
                  std::int64_t elements, std::int64_t size) {
    if (n == 1) return;
    const std::int64_t own = plan::part_of(elements, n, place).size();
    Traffic& t = table_[{axis, "all_reduce", purpose}];
    ++t.calls;
    t.payload_bytes += elements * size;
    t.wire_bytes += ((n - 1) * own + elements - own) * size;
  }
  void unfinished(const std::string& axis, const std::string& purpose, std::int64_t n, std::int64_t place,
                  std::int64_t elements) {
    if (track_ == Track::exact) all_reduce(axis, purpose, n, place, 1, 8);
    all_reduce(axis, purpose, n, place, elements, scalar());
  }
  void joined(const std::string& purpose, std::int64_t elements) {
    unfinished("tp", purpose, s_.tp, place_.tp, elements);
  }
  void row(const std::string& purpose, std::int64_t elements) {
    all_reduce("tp", purpose, s_.tp, place_.tp, elements, scalar());
  }
  /// Of rows x hidden.
  void message(const std::string& kind, const std::string& purpose, std::int64_t rows) {
    const bool scattered = s_.boundary == "scattered";
    const std::int64_t own = scattered ? plan::part_of(rows, s_.tp, place_.tp).size() : rows;
    const std::int64_t row = w_.hidden * scalar();
    Traffic& t = table_[{"pp", kind, purpose}];
    ++t.calls;
    t.payload_bytes += own * row;
    if (kind != "receive") return;
    t.wire_bytes += own * row;
    if (!scattered) return;
    Traffic& gathered = table_[{"tp", "all_gather", purpose}];
    ++gathered.calls;
    gathered.payload_bytes += rows * row;
    gathered.wire_bytes += (rows - own) * row;
  }

  /// Whether another rank has the microbatch on that stage.
  bool elsewhere(std::int64_t stage, std::int64_t microbatch) const {
    return plan_.pipeline.placement.rank_of(stage, microbatch) != place_.pp;
  }

  void microbatch(std::int64_t stage, std::int64_t k, std::int64_t rows) {
    const std::int64_t h = w_.hidden, last = plan_.stages() - 1;
    if (stage == 0) row("embedding_output", rows * h);
    if (stage > 0 && elsewhere(stage - 1, k))
      message("receive", "stage_output", rows), message("send", "stage_output_gradient", rows);
    const auto layers = plan_.layout.stage_layers[static_cast<std::size_t>(stage)];
    for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
      joined("attention_row_output", rows * h);
      joined("mlp_row_output", rows * h);
      joined("mlp_column_input_gradient", rows * h);
      if (plan_.layout.shares_key_heads()) {
        joined("key_gradient", rows * w_.kv_hidden());
        joined("value_gradient", rows * w_.kv_hidden());
      }
      joined("attention_column_input_gradient", rows * h);
    }
    if (stage < last) {
      if (!elsewhere(stage + 1, k)) return;
      message("send", "stage_output", rows);
      message("receive", "stage_output_gradient", rows);
      return;
    }
    for (const auto* purpose : {"logit_max", "logit_sum", "target_logit"}) row(purpose, rows);
    if (w_.label_smoothing > 0) joined("logit_total", rows);
    joined("head_input_gradient", rows * h);
  }

  void gradient(const plan::ParameterLayout& p) {
    const auto holders = plan_.holders(p);
    const auto at = std::ranges::find(holders, place_.pp);
    if (at == holders.end() || !p.parameter.trainable) return;
    const std::int64_t elements = elements_of(p.held_dims(place_.tp)), place = at - holders.begin();
    const bool is_partial = p.stages().size() > 1;
    if (is_partial) unfinished("pp", "copies_gradient", std::ssize(holders), place, elements);
    if (p.split_dim >= 0 && p.held != p.owned) joined("shared_rows_gradient", p.parameter.elements());
    if (is_partial) return unfinished("dp", "gradient", s_.dp, place_.dp, elements);
    unfinished("dp", "gradient", s_.dp * std::ssize(holders), place_.dp * std::ssize(holders) + place, elements);
  }

  const Workload& w_;
  const Strategy& s_;
  Track track_;
  std::int64_t samples_;
  plan::Plan plan_;
  TrafficTable& table_;
  plan::Place place_;
};

TEST(PredictedTraffic, IsThatOfEveryRankCallByCall) {
  std::mt19937 random(9);
  for (std::int64_t i = 0; i < 300; ++i) {
    const Workload w = workload::random_workload(17, i);
    const Strategy s = testing::random_strategy(random, w);
    for (const Track track : {Track::exact, Track::f64, Track::native}) {
      TrafficTable walked;
      Walk walk(w, s, track, w.batch, walked);
      for (std::int64_t r = 0; r < s.ranks(); ++r) walk.rank(Rank{static_cast<std::int32_t>(r)});
      ASSERT_EQ(testing::traffic_of(w, s, track, w.batch), walked) << plan::print(s) << "\n" << workload::print(w);
    }
  }
}

Workload small() {
  Workload w;
  w.layers = 3, w.hidden = 6, w.heads = 3, w.kv_heads = 1, w.mlp_hidden = 11, w.vocab = 13, w.sequence = 5;
  w.unused = {4};
  return w;
}

TEST(PredictedTraffic, AddsUpByHand) {
  const Strategy s{.dp = 2, .pp = 2, .tp = 2, .schedule = "gpipe", .microbatches = 2};
  Workload w = small();
  w.label_smoothing = 0.1;
  // 3 samples of 5 rows in 4 microbatches, one of them empty. All groups but the world have two members, so that
  // their wire is their payload; layers 2 and 1; both tensor ranks hold the key head. A bound is 8 bytes.
  constexpr std::int64_t rows = 15, layer_sum = 2 * (3 * rows * 6 * 8 + 12 * 8), layer_calls = 12 * 2 * 2;
  constexpr std::int64_t key_sum = 2 * (3 * rows * 2 * 8 + 12 * 8);
  // Of a block, on both tensor ranks together: norms, query, key and value, output, up, down.
  constexpr std::int64_t block = 2 * 24 + 42 + 2 * 28 + (36 + 2 * 6) + 77 + (66 + 2 * 6);
  // The token embedding on two stages, positions, the unused, blocks, the final norm.
  constexpr std::int64_t gradients = 2 * 78 + 2 * 30 + 2 * 4 + 3 * block + 2 * 12;
  constexpr std::int64_t tensors = 2 * ((3 + 2 * 16) + (16 + 2 + 1));
  const auto reduced = [](std::int64_t calls, std::int64_t bytes) { return Traffic{calls, bytes, bytes}; };
  const Traffic layer = reduced(layer_calls, layer_sum), key = reduced(layer_calls, key_sum);
  const Traffic row = reduced(4 * 2, 2 * rows * 8);
  constexpr std::int64_t boundary = 2 * rows * 6 * 8;  // of both tensor ranks
  const TrafficTable expected = {
      {{"dp", "all_reduce", "label_count"}, reduced(8, 64)},
      {{"dp", "all_reduce", "gradient"}, reduced(tensors * 2 * 2, 2 * 8 * (gradients + tensors))},
      {{"pp", "all_reduce", "copies_gradient"}, reduced(4 * 2 * 2, 2 * 8 * (2 * 78 + 4))},
      {{"tp", "all_reduce", "attention_row_output"}, layer},
      {{"tp", "all_reduce", "mlp_row_output"}, layer},
      {{"tp", "all_reduce", "attention_column_input_gradient"}, layer},
      {{"tp", "all_reduce", "mlp_column_input_gradient"}, layer},
      {{"tp", "all_reduce", "key_gradient"}, key},
      {{"tp", "all_reduce", "value_gradient"}, key},
      // Twice (data ranks) three layers of two weights of 2 x 6 and two biases of 2.
      {{"tp", "all_reduce", "shared_rows_gradient"}, reduced(2 * 12 * 2 * 2, 2 * 2 * 8 * (3 * 28 + 12))},
      {{"tp", "all_reduce", "embedding_output"}, reduced(4 * 2, 2 * rows * 6 * 8)},
      {{"tp", "all_reduce", "head_input_gradient"}, reduced(4 * 2 * 2, 2 * (rows * 6 * 8 + 4 * 8))},
      {{"tp", "all_reduce", "logit_max"}, row},
      {{"tp", "all_reduce", "logit_sum"}, row},
      {{"tp", "all_reduce", "target_logit"}, row},
      {{"tp", "all_reduce", "logit_total"}, reduced(4 * 2 * 2, 2 * (rows * 8 + 4 * 8))},
      {{"pp", "send", "stage_output"}, {2 * 4, boundary, 0}},
      {{"pp", "receive", "stage_output"}, {2 * 4, boundary, boundary}},
      {{"pp", "send", "stage_output_gradient"}, {2 * 4, boundary, 0}},
      {{"pp", "receive", "stage_output_gradient"}, {2 * 4, boundary, boundary}},
      {{"world", "all_reduce", "gradient_norm"}, {8, 8 * 32, 2 * 7 * 32}},
      {{"world", "all_reduce", "loss"}, {8, 8 * 32, 2 * 7 * 32}},
      {{"world", "all_reduce", "overflow"}, {8, 8 * 4, 2 * 7 * 4}},
  };
  EXPECT_EQ(testing::traffic_of(w, s, Track::exact, 3), expected);
}

std::vector<std::string> purposes(const TrafficTable& table) {
  std::vector<std::string> names;
  for (const auto& [key, t] : table) names.push_back(key.purpose);
  return names;
}

TEST(PredictedTraffic, GroupsOfOneMakeNoCalls) {
  EXPECT_EQ(testing::traffic_of(small(), {.microbatches = 3}, Track::exact, 4), TrafficTable{});
  EXPECT_EQ(purposes(testing::traffic_of(small(), {.dp = 2}, Track::exact, 4)),
            (std::vector<std::string>{"gradient", "label_count", "gradient_norm", "loss", "overflow"}));
  Workload w = small();
  w.tied_head = false;
  EXPECT_EQ(purposes(testing::traffic_of(w, {.pp = 2}, Track::f64, 4)),
            (std::vector<std::string>{"stage_output", "stage_output_gradient", "stage_output", "stage_output_gradient",
                                      "gradient_norm", "loss", "overflow"}));
  w.frozen = {"*"};
  EXPECT_EQ(purposes(testing::traffic_of(w, {.dp = 2}, Track::f64, 4)),
            (std::vector<std::string>{"label_count", "gradient_norm", "loss", "overflow"}));
}

TEST(PredictedTraffic, EmptyMicrobatchesCallWithoutBytes) {
  const Strategy s{.tp = 2, .microbatches = 4};
  const TrafficTable none = testing::traffic_of(small(), s, Track::native, 0);
  EXPECT_EQ((none.at({"tp", "all_reduce", "mlp_row_output"})), (Traffic{.calls = 3 * 4 * 2}));
  EXPECT_EQ((testing::traffic_of(small(), s, Track::exact, 0).at({"tp", "all_reduce", "mlp_row_output"})),
            (Traffic{.calls = 3 * 4 * 2 * 2, .payload_bytes = 12 * 2 * 8, .wire_bytes = 12 * 2 * 8}));
}

TEST(PredictedTraffic, ASharedBlockIsSummedOverItsTwoStages) {
  Workload w = small();
  w.tied_head = false;
  w.shared_block = {0, 2};
  const TrafficKey key{"pp", "all_reduce", "copies_gradient"};
  constexpr std::int64_t block = 24 + 42 + 28 + 42 + 77 + 72;
  EXPECT_EQ(testing::traffic_of(w, {.pp = 2, .layers = {2, 1}}, Track::f64, 4).at(key),
            (Traffic{16 * 2, 2 * 8 * block, 2 * 8 * block}));
  EXPECT_FALSE(testing::traffic_of(w, {.pp = 2, .layers = {3, 0}}, Track::f64, 4).contains(key));
  w.frozen = {"blocks.0.*"};
  EXPECT_FALSE(testing::traffic_of(w, {.pp = 2, .layers = {2, 1}}, Track::f64, 4).contains(key));
}

}  // namespace
}  // namespace shardproof::predict
