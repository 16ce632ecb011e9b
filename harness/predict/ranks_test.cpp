// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/ranks.hpp"

#include <gtest/gtest.h>

#include "harness/predict/testing.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::predict {
namespace {

using plan::Axis;
using plan::Strategy;
using workload::Workload;

Workload small() {
  Workload w;
  w.layers = 3, w.hidden = 6, w.heads = 3, w.kv_heads = 1, w.mlp_hidden = 11, w.vocab = 13, w.sequence = 5;
  w.dropout = 0.1;
  return w;
}

constexpr RoleBytes marked{.activation = 1000, .statistic = 100, .mask = 1, .parameter = 2, .gradient = 3, .state = 5};

RankForm form(const Workload& w, const Strategy& s, std::array<std::int64_t, 3> pp_dp_tp, std::int64_t samples) {
  return rank_form(w, s, plan::pipeline_of(s), mesh_of(s).rank_at(pp_dp_tp), marked, samples);
}

TEST(RankForm, CutsTheBatchIntoUnequalAndEmptyMicrobatches) {
  Strategy s{.dp = 3, .pp = 2, .schedule = "gpipe", .microbatches = 2};
  const std::int64_t samples[] = {3, 2, 2};  // 7 samples: 2 1, 1 1, 1 1
  for (std::int64_t d = 0; d < 3; ++d) {
    const RankForm f = form(small(), s, {1, d, 0}, 7);
    EXPECT_EQ(f.samples, std::vector{samples[d]});
    EXPECT_EQ(f.microbatches_in_flight, 2);
  }
  const RankForm empty = form(small(), s, {0, 2, 0}, 4);  // 1 1, 1 1, 0 0
  EXPECT_EQ(empty.samples, std::vector<std::int64_t>{0});
  EXPECT_EQ(empty.microbatches_in_flight, 2);
  EXPECT_EQ(empty.memory.saved, 0);
  EXPECT_EQ(empty.flops.total(), 0);
  EXPECT_GT(empty.memory.parameter, 0);
}

TEST(RankForm, HoldsAllMicrobatchesUnderGpipeAndOneUnderNaive) {
  const Workload w = small();
  Strategy s{.pp = 2, .schedule = "naive", .microbatches = 3, .layers = {3, 0}};
  for (const std::int64_t pp : {0, 1}) {
    const RankForm one = form(w, s, {pp, 0, 0}, 7);
    EXPECT_EQ(one.microbatches_in_flight, 1);
    EXPECT_EQ(one.memory.saved, pp == 0 ? saved_embedding_bytes(w, marked, 3) + 3 * saved_block_bytes(w, marked, 3)
                                        : saved_head_bytes(w, marked, 3));
  }
  s.schedule = "gpipe";
  const RankForm first = form(w, s, {0, 0, 0}, 7), last = form(w, s, {1, 0, 0}, 7);
  EXPECT_EQ(first.microbatches_in_flight, 3);
  EXPECT_EQ(first.memory.saved, saved_embedding_bytes(w, marked, 7) + 3 * saved_block_bytes(w, marked, 7));
  EXPECT_EQ(last.memory.saved, saved_head_bytes(w, marked, 7));
}

// Huang et al. 2019, section 2.3: without re-materialization the peak is of the order of mini-batch x layers, however
// many partitions and microbatches there are.
TEST(RankForm, GpipeKeepsTheWholeBatchOfEveryLayer) {
  const Workload w = small();
  for (const std::int64_t pp : {2, 3, 5}) {
    for (const std::int64_t microbatches : {1, 4, 9}) {
      const Strategy s{.pp = pp, .schedule = "gpipe", .microbatches = microbatches};
      std::int64_t sum = 0;
      for (std::int64_t p = 0; p < pp; ++p) sum += form(w, s, {p, 0, 0}, 7).memory.saved;
      EXPECT_EQ(sum, memory(w, marked, 7).saved);
    }
  }
}

TEST(RankForm, NamesThePartsOfItsStage) {
  const Workload w = small();
  const Strategy s{.dp = 2, .pp = 4, .tp = 3, .order = {Axis::tp, Axis::pp, Axis::dp}, .layers = {0, 2, 0, 1}};
  // 3 samples: 2 and 1. Tensor rank 0 of 3: one query head, the key head, 4 columns, 5 rows of the vocabulary.
  const auto saved = [&](std::int64_t p, std::int64_t d) { return form(w, s, {p, d, 0}, 3).saved; };
  const auto block = [](std::int64_t samples) {
    const std::int64_t n = samples * 5, scores = samples * 25;
    const std::int64_t whole = 4 * n * 6, query = 2 * n * 2, key = 2 * n * 2, mlp = 2 * n * 4;
    return 1000 * (whole + query + key + mlp + 2 * scores) + 100 * 4 * n + scores + 2 * n * 6;
  };
  EXPECT_EQ(saved(0, 0), (std::vector<PartBytes>{{"embedding", 10 * 6}}));
  EXPECT_EQ(saved(1, 0), (std::vector<PartBytes>{{"blocks.0", block(2)}, {"blocks.1", block(2)}}));
  EXPECT_EQ(saved(1, 1), (std::vector<PartBytes>{{"blocks.0", block(1)}, {"blocks.1", block(1)}}));
  EXPECT_EQ(saved(2, 0), std::vector<PartBytes>{});
  EXPECT_EQ(saved(3, 1),
            (std::vector<PartBytes>{{"blocks.2", block(1)}, {"head", 1000 * (2 * 5 * 6 + 5 * 5) + 100 * 4 * 5}}));
}

TEST(RankForm, CountsSharedKeyHeadsAsOftenAsTheyAreComputed) {
  Workload w = small();
  w.layers = 1;
  const Strategy s{.tp = 2};
  const auto linear = [](double out, double in) { return 2 * 2 * 5 * out * in; };  // 2 samples
  const auto attention = [](double width) { return 2 * 2 * 5 * 5 * width; };
  // Heads 2 and 1 of width 2; both read the one key head, which rank 0 owns; columns 6 and 5; vocabulary 7 and 6.
  const Flops first = form(w, s, {0, 0, 0}, 2).flops, second = form(w, s, {0, 0, 1}, 2).flops;
  const double first_linear = 2 * linear(4, 6) + 2 * linear(6, 6) + linear(7, 6);
  const double second_linear = 2 * linear(2, 6) + 2 * linear(5, 6) + linear(6, 6), key = 2 * linear(2, 6);
  EXPECT_EQ(first.forward, first_linear + key + 2 * attention(4));
  EXPECT_EQ(first.backward_input, first_linear + key + 4 * attention(4));
  EXPECT_EQ(first.backward_weight, first_linear + key);
  EXPECT_EQ(second.forward, second_linear + key + 2 * attention(2));
  EXPECT_EQ(second.backward_input, second_linear + 4 * attention(2));
  EXPECT_EQ(second.backward_weight, second_linear + key);
  w.frozen = {"*.key.weight", "token_embedding.weight"};
  EXPECT_EQ(form(w, s, {0, 0, 1}, 2).flops.backward_weight, second.backward_weight - linear(2, 6) - linear(6, 6));
}

// Each rank's part is some other rank's rest: together they do what one device does, and copied key heads once more.
TEST(RankForm, AddsUpToOneDeviceOnRandomWorkloads) {
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < 300; ++i) {
    const Workload w = workload::random_workload(13, i);
    const Strategy s = testing::random_strategy(random, w);
    SCOPED_TRACE(plan::print(s) + "\n" + workload::print(w));
    const plan::Pipeline pipeline = plan::pipeline_of(s);
    Flops sum;
    std::int64_t copied_keys = -w.kv_hidden(), samples = 0;
    for (std::int64_t t = 0; t < s.tp; ++t) copied_keys += holding(w, s, 0, t).k;
    for (std::int64_t r = 0; r < s.ranks(); ++r) {
      const RankForm f =
          rank_form(w, s, pipeline, Rank{static_cast<std::int32_t>(r)}, role_bytes(Track::exact), w.batch);
      sum.forward += f.flops.forward;
      sum.backward_input += f.flops.backward_input;
      sum.backward_weight += f.flops.backward_weight;
      samples += std::accumulate(f.samples.begin(), f.samples.end(), std::int64_t{0});
    }
    ASSERT_EQ(samples, w.batch * pipeline.placement.stages() * s.tp);
    const Flops one = flops(w, w.batch);
    const double copies = 2.0 * 2 * static_cast<double>(w.batch * w.sequence * w.layers * w.hidden * copied_keys);
    ASSERT_EQ(sum.forward, one.forward + copies);
    ASSERT_EQ(sum.backward_input, one.backward_input);
    if (w.frozen.empty()) {
      ASSERT_EQ(sum.backward_weight, one.backward_weight + copies);
    }
  }
}

// Stage 0 is on two ranks: each runs every second step, so that in any step one of them has samples, saves and
// computes.
TEST(RankForm, RanksThatTakeStepsInTurnHaveTheirOwnAlone) {
  const Workload w = small();
  const Strategy s{.pp = 2, .schedule = "pipedream", .replicas = {2, 1}};
  const plan::Pipeline pipeline = plan::pipeline_of(s, 4);
  for (std::int64_t step = 1; step <= 4; ++step) {
    for (std::int32_t r = 0; r < 3; ++r) {
      const std::int64_t samples = r == 2 || r == (step - 1) % 2 ? 7 : 0;
      const RankForm f = rank_form(w, s, pipeline, Rank{r}, marked, 7, step);
      EXPECT_EQ(f.samples, std::vector{samples});
      EXPECT_EQ(f.saved.empty(), samples == 0);
      EXPECT_EQ(f.flops.total(), flops(w, f.stages.front(), samples).total());
      EXPECT_EQ(rank_flops(w, s, pipeline, Rank{r}, 7, step).total(), f.flops.total());
    }
  }
  // Versions kept: of stage 0 two (one of two minibatches in flight has read the one before), of stage 1 the newest.
  const auto parameters = [&](std::int32_t r) {
    const RankForm f = rank_form(w, s, pipeline, Rank{r}, marked, 7);
    return f.memory.parameter / (2 * count(w, f.stages.front()).elements);
  };
  EXPECT_EQ(parameters(0), 2);
  EXPECT_EQ(parameters(2), 1);
}

// Of a flushed step all microbatches are summed, whichever its number.
TEST(RankForm, FlopsOfAStepAreThoseOfTheForm) {
  const Workload w = small();
  const Strategy s{.dp = 2, .pp = 2, .schedule = "dualpipe", .microbatches = 4};
  const plan::Pipeline pipeline = plan::pipeline_of(s);
  for (std::int32_t r = 0; r < 4; ++r)
    EXPECT_EQ(rank_flops(w, s, pipeline, Rank{r}, 7, 3).total(),
              rank_form(w, s, pipeline, Rank{r}, marked, 7).flops.total());
}

TEST(RankForm, KnowsItsPlaceInAnyMeshOrder) {
  const Workload w = small();
  const Strategy s{.dp = 2, .pp = 3, .tp = 2, .order = {Axis::tp, Axis::dp, Axis::pp}};
  // Outermost tp: rank 8 is tp 1, dp 0, pp 2.
  const RankForm f = rank_form(w, s, plan::pipeline_of(s), Rank{8}, marked, 5);
  EXPECT_TRUE(f.stages.front().is_last);
  EXPECT_EQ(f.stages.front().v, 6);
  EXPECT_EQ(f.samples, std::vector<std::int64_t>{3});
  EXPECT_EQ(f.memory.parameter, 2 * count(w, holding(w, s, 2, 1)).elements);
  EXPECT_EQ(f.memory.gradient, 3 * count(w, holding(w, s, 2, 1)).elements);
  EXPECT_EQ(f.memory.optimizer_state, 2 * 5 * count(w, holding(w, s, 2, 1)).elements);
}

}  // namespace
}  // namespace shardproof::predict
