// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

using Settings = std::vector<std::string>;

std::string refusal(std::string_view text, const Settings& settings = {}, std::optional<std::int64_t> ranks = {}) {
  try {
    require_legal(parse_strategy(text), workload::load("tiny", settings), ranks);
  } catch (const NotSupported& error) {
    return error.what();
  }
  return "legal";
}

TEST(StrategyRefusals, AShapeThatTheScheduleCannotServe) {
  EXPECT_EQ(refusal("pp3 schedule=dualpipe microbatches=6"),
            "schedule=dualpipe: ranks 3: it needs an even number, as 4, and at least two microbatches a rank, as 8; "
            "the nearest legal strategy is pp3 microbatches=6");
  EXPECT_EQ(
      refusal("pp2 schedule=gpipe chunks=3"),
      "chunks=3: schedule=gpipe: chunks 3: a rank holds 1 stage; the nearest legal strategy is pp2 schedule=gpipe");
  EXPECT_EQ(refusal("pp2 schedule=interleaved chunks=1"),
            "chunks=1: schedule=interleaved: chunks 1: a rank holds at least 2 stages, chunks 2; with one it is "
            "one_f_one_b; the nearest legal strategy is pp2 schedule=interleaved");
  EXPECT_EQ(refusal("pp2 schedule=zb_v layers=1,1", {"layers=2"}),
            "layers=1,1: it has 2 stages, pp2 schedule=zb_v has 4; the nearest legal strategy is pp2 schedule=zb_v");
  EXPECT_EQ(refusal("pp2 schedule=interleaved chunks=3 layers=0,1,0,0,1,0", {"layers=2"}), "legal");
}

// Who names a schedule wants that one: its microbatches change before it does.
TEST(StrategyRefusals, TheNearestKeepsTheScheduleWhereOtherMicrobatchesDo) {
  const std::string nearest = "; the nearest legal strategy is ";
  for (const auto& [microbatches, legal] : {std::pair(1, 8), {3, 8}, {8, 8}, {11, 12}, {12, 12}}) {
    const auto s = parse_strategy("pp4 schedule=dualpipe microbatches=" + std::to_string(microbatches));
    EXPECT_EQ(print(nearest_legal(s, workload::load("tiny"))),
              "pp4 schedule=dualpipe microbatches=" + std::to_string(legal));
  }
  EXPECT_EQ(refusal("pp4 schedule=dualpipe"),
            "schedule=dualpipe: microbatches 1: it needs an even number of at least two a rank, as 8" + nearest +
                "pp4 schedule=dualpipe microbatches=8");
  EXPECT_EQ(refusal("pp3 schedule=pipedream_2bw", {"tied_head=false"}),
            "schedule=pipedream_2bw: microbatches per update 1: at least one a rank, 3" + nearest +
                "pp3 schedule=pipedream_2bw microbatches=3");
  EXPECT_EQ(refusal("pp2 schedule=pipedream microbatches=4", {"tied_head=false", "clip=1"}),
            "schedule=pipedream: clip is 1, and no stage has the whole gradient when it updates (legal: clip=off); "
            "microbatches is 4, and each batch is one minibatch (legal: microbatches=1)" +
                nearest + "pp2 schedule=pipedream clip=off");
}

// Each names the field, its value and what is legal; no microbatches help.
TEST(StrategyRefusals, WhatStagesThatUpdateByThemselvesCannotShare) {
  EXPECT_EQ(refusal("pp2 schedule=pipedream", {"tied_head=true"}),
            "schedule=pipedream: tied_head is true, one weight of the first and the last stage, which update by "
            "themselves (legal: --set tied_head=false); the nearest legal strategy is pp2");
  EXPECT_EQ(refusal("pp2 schedule=pipedream_2bw microbatches=2", {"tied_head=false", "layers=4", "shared_block=0,2"}),
            "schedule=pipedream_2bw: shared_block is 0,2, one block of two stages, which update by themselves (legal: "
            "layers that put both on one stage, or --set shared_block=); the nearest legal strategy is pp2 "
            "microbatches=2");
}

TEST(StrategyRefusals, APipelineOfMoreRanksThanCanBePlanned) {
  EXPECT_EQ(refusal("pp131072"), "legal");
  EXPECT_EQ(refusal("pp131073"), "pp131073: a pipeline is of at most 131072 ranks; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("pp2147483648 schedule=pipedream", {"tied_head=false"}),
            "pp2147483648: a pipeline is of at most 131072 ranks; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("pp2 schedule=interleaved chunks=131072"), "legal");
  EXPECT_EQ(refusal("pp2 schedule=interleaved chunks=131073"),
            "chunks=131073: stages, ranks x chunks, must be at most 262144; the nearest legal strategy is pp2 "
            "schedule=interleaved");
  EXPECT_EQ(refusal("schedule=pipedream replicas=131073", {"tied_head=false"}),
            "replicas=131073: they are 131073 ranks, a pipeline is of at most 131072; the nearest legal strategy is "
            "dp1");
}

TEST(StrategyRefusals, ALongListIsQuotedInShort) {
  std::string list = "1";
  for (int k = 1; k < 1000; ++k) list += ",1";
  const std::string quoted = "replicas=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...";
  EXPECT_EQ(refusal("pp2 schedule=pipedream replicas=" + list, {"tied_head=false"}),
            quoted + ": it has 1000 stages, pp2 has 2; the nearest legal strategy is pp2 schedule=pipedream");
  EXPECT_EQ(refusal("pp2 schedule=gpipe replicas=" + list),
            quoted + " has no effect without schedule=pipedream; the nearest legal strategy is pp2 schedule=gpipe");
  EXPECT_EQ(refusal("pp1000 schedule=pipedream replicas=" + list + "2", {"tied_head=false"}, 7).substr(0, 80),
            ("pp1000 " + quoted + " is 1011 ranks, there are 7").substr(0, 80));
  const std::vector<std::int64_t> many(1000, 1);
  EXPECT_EQ(schedule_generator("pipedream").refusal({.ranks = 5, .replicas = many}),
            "replicas 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...: they are more than the 5 ranks");
  EXPECT_EQ(schedule_generator("gpipe").refusal({.ranks = 5, .replicas = many}),
            "replicas 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...: a stage is on one rank but in pipedream");
}

// What refuses one key must not hide that another one is illegal too.
TEST(StrategyRefusals, TheNearestLegalStrategyIsLegal) {
  for (const bool tied : {true, false}) {
    const auto w =
        workload::load("tiny", std::vector<std::string>{"layers=4", tied ? "tied_head=true" : "tied_head=false",
                                                        tied ? "shared_block=" : "shared_block=0,2"});
    for (const auto* generator : schedules())
      for (const std::int64_t chunks : {0, 1, 2, 3})
        for (const std::int64_t pp : {1, 3, 4})
          for (const std::int64_t microbatches : {1, 2, 8})
            for (const std::string sync : {"off", "on"})
              for (const double clip : {0.0, 1.0}) {
                std::vector<std::int64_t> layers(static_cast<std::size_t>(pp * std::max<std::int64_t>(chunks, 1)), 0);
                layers.front() = 3, layers.back() += 1;  // the shared block lies on one stage
                const Strategy s{
                    .pp = pp,
                    .schedule = std::string(generator->name),
                    .chunks = chunks == generator->chunks ? 0 : chunks,
                    .vertical_sync = sync,
                    .replicas = microbatches == 2 ? std::vector<std::int64_t>{2, 1, 1} : std::vector<std::int64_t>{},
                    .microbatches = microbatches,
                    .layers = layers,
                    .boundary = "scattered",
                    .clip = clip};
                const Strategy nearest = nearest_legal(s, w);
                EXPECT_TRUE(refusals(nearest, w).empty()) << print(s) << " gives " << print(nearest);
              }
  }
}

TEST(StrategyRefusals, WhatHasNoEffect) {
  EXPECT_EQ(refusal("schedule=gpipe"), "schedule=gpipe has no effect with pp1; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("dp2 schedule=gpipe microbatches=3"),
            "schedule=gpipe has no effect with pp1; the nearest legal strategy is dp2 microbatches=3");
  EXPECT_EQ(refusal("pp2 microbatches=2097153"),
            "microbatches=2097153: stages x microbatches must be at most 4194304; the nearest legal strategy is pp2");
  EXPECT_EQ(refusal("chunks=3"), "chunks=3 has no effect with pp1; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("tp2 layers=2", {"layers=2"}),
            "layers=2 has no effect with pp1; the nearest legal strategy is tp2");
  EXPECT_EQ(refusal("tp2 order=tp,pp,dp"),
            "order=tp,pp,dp has no effect where fewer than two axes are above 1; the nearest legal strategy is tp2");
  EXPECT_EQ(refusal("dp2 tp2 order=tp,pp,dp"), "legal");
}

TEST(StrategyRefusals, AScheduleWithoutAFlushCoversAllSteps) {
  const std::string nearest = "; the nearest legal strategy is pp2";
  EXPECT_EQ(refusal("pp2 schedule=pipedream", {"tied_head=false", "steps=2097152"}), "legal");
  EXPECT_EQ(refusal("pp2 schedule=pipedream", {"tied_head=false", "steps=2097153"}),
            "schedule=pipedream: steps 2097153: stages x microbatches x steps must be at most 4194304" + nearest);
  EXPECT_EQ(refusal("pp2 schedule=pipedream_2bw microbatches=4", {"tied_head=false", "steps=524289"}),
            "schedule=pipedream_2bw: steps 524289: stages x microbatches x steps must be at most 4194304" + nearest +
                " microbatches=4");
}

TEST(StrategyRefusals, LayersOfRefusedChunksAreThoseWithout) {
  EXPECT_EQ(refusal("pp2 schedule=zb_h1 chunks=3 layers=0,2"),
            "chunks=3: schedule=zb_h1: chunks 3: a rank holds 1 stage; the nearest legal strategy is pp2 "
            "schedule=zb_h1 layers=0,2");
}

TEST(StrategyRefusals, RanksThatTakeStepsInTurn) {
  const Settings untied = {"tied_head=false", "steps=6", "layers=3"};
  EXPECT_EQ(refusal("pp3 schedule=pipedream replicas=3,2,1", untied), "legal");
  EXPECT_EQ(refusal("pp3 schedule=pipedream replicas=1,2,3", untied, 6), "legal");
  EXPECT_EQ(refusal("schedule=pipedream replicas=2", untied), "legal");
  EXPECT_EQ(refusal("pp3 schedule=pipedream replicas=4,1,2", untied),
            "replicas=4,1,2: steps 6: the ranks of stage 0 take 4 in turn, a multiple of that as 8; the nearest legal "
            "strategy is pp3 schedule=pipedream");
  EXPECT_EQ(refusal("pp3 schedule=pipedream replicas=2,1", untied),
            "replicas=2,1: it has 2 stages, pp3 has 3; the nearest legal strategy is pp3 schedule=pipedream");
  EXPECT_EQ(
      refusal("pp2 schedule=pipedream vertical_sync=on replicas=1,2", untied),
      "replicas=1,2: vertical sync with replicas 1,2: an update of stage 1 is of 2 minibatches, which must divide "
      "those of stage 0, 1, as 1 does; the nearest legal strategy is pp2 schedule=pipedream vertical_sync=on");
  EXPECT_EQ(refusal("pp2 schedule=gpipe replicas=2,1", untied),
            "replicas=2,1 has no effect without schedule=pipedream; the nearest legal strategy is pp2 schedule=gpipe");
  EXPECT_EQ(refusal("pp2 schedule=pipedream replicas=2,1", untied, 4),
            "pp2 replicas=2,1 is 3 ranks, there are 4; the nearest legal strategy is dp2 pp2 schedule=pipedream");
}

TEST(StrategyRefusals, ASyncNeedsADataGroup) {
  Strategy strategy{.tp = 2, .sync = "bucketed"};
  const auto w = workload::load("tiny");
  const auto found = refusals(strategy, w);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "sync");
  EXPECT_EQ(found[0].reason, "sync=bucketed has no effect with dp1");
  strategy.dp = 2;
  EXPECT_TRUE(refusals(strategy, w).empty());
}

TEST(StrategyRefusals, DefaultsThatAreWrittenOutAreLegal) {
  EXPECT_EQ(refusal("dp1 schedule=naive layers=balanced sync=all_reduce order=pp,dp,tp"), "legal");
}

TEST(StrategyRefusals, LayersMustFitStagesAndWorkload) {
  EXPECT_EQ(refusal("pp2 layers=3,2,2", {"layers=7"}),
            "layers=3,2,2: it has 3 stages, pp2 has 2; the nearest legal strategy is pp2");
  EXPECT_EQ(refusal("pp2 layers=7", {"layers=7"}),
            "layers=7: it has 1 stage, pp2 has 2; the nearest legal strategy is pp2");
  EXPECT_EQ(refusal("pp3 layers=3,2,1", {"layers=7"}),
            "layers=3,2,1: it sums to 6, tiny has 7 layers; the nearest legal strategy is pp3");
  EXPECT_EQ(refusal("pp3 layers=3,2,3", {"layers=7"}),
            "layers=3,2,3: it sums to 8, tiny has 7 layers; the nearest legal strategy is pp3");
  EXPECT_EQ(refusal("pp3 layers=0,7,0", {"layers=7"}), "legal");
}

TEST(StrategyRefusals, AxesMustMultiplyToTheRanks) {
  EXPECT_EQ(refusal("dp2 pp2", {}, 6), "dp2 pp2 is 4 ranks, there are 6; the nearest legal strategy is dp3 pp2");
  EXPECT_EQ(refusal("dp2 tp4", {}, 2), "dp2 tp4 is 8 ranks, there are 2; the nearest legal strategy is dp2");
  EXPECT_EQ(refusal("dp4", {}, 1), "dp4 is 4 ranks, there is 1; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("dp1", {}, 5), "dp1 is 1 rank, there are 5; the nearest legal strategy is dp5");
  EXPECT_EQ(refusal("pp2 tp3", {}, 7), "pp2 tp3 is 6 ranks, there are 7; the nearest legal strategy is tp7");
  EXPECT_EQ(refusal("dp2 pp2 tp2", {}, 8), "legal");
  EXPECT_EQ(refusal("dp1", {}, 2147483647),
            "dp1 is 1 rank, there are 2147483647; the nearest legal strategy is "
            "dp2147483647");
  for (const std::int64_t ranks : {std::int64_t{0}, std::int64_t{-1}, (std::int64_t{1} << 31) + 1})
    EXPECT_THROW(require_legal({}, workload::load("tiny"), ranks), BadInput) << ranks;
}

TEST(StrategyRefusals, OtherKeysFollowTheNearestAxes) {
  EXPECT_EQ(refusal("pp3 schedule=gpipe layers=3,2,2", {"layers=7"}, 1),
            "pp3 is 3 ranks, there is 1; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("pp3 schedule=gpipe layers=3,2,2", {"layers=7"}, 2),
            "pp3 is 3 ranks, there are 2; the nearest legal strategy is pp2 schedule=gpipe");
}

TEST(StrategyRefusals, ProgramKeysMustLeaveTheWorkloadLegal) {
  const Settings decay = {"optimizer=adamw", "weight_decay=0.1"};
  EXPECT_EQ(refusal("optimizer=sgd", decay),
            "optimizer=sgd: weight_decay is 0.1, which has no effect: optimizer is sgd, and only adamw decays; the "
            "nearest legal strategy is dp1");
  EXPECT_EQ(refusal("optimizer=adamw clip=2", decay), "legal");
}

TEST(StrategyRefusals, EveryReasonIsGiven) {
  const auto w = workload::load("tiny");
  const auto found = refusals(parse_strategy("tp2 order=tp,dp,pp schedule=gpipe layers=1,1"), w, 4);
  ASSERT_EQ(found.size(), 4u);
  const char* const keys[] = {"ranks", "order", "schedule", "layers"};
  for (std::size_t k = 0; k < found.size(); ++k) EXPECT_EQ(found[k].key, keys[k]);
  EXPECT_EQ(refusal("tp2 order=tp,dp,pp schedule=gpipe", {}, 4),
            "tp2 is 2 ranks, there are 4\n"
            "order=tp,dp,pp has no effect where fewer than two axes are above 1\n"
            "schedule=gpipe has no effect with pp1; the nearest legal strategy is dp2 tp2 order=tp,dp,pp");
}

TEST(StrategyRefusals, EverySizeIsLegal) {
  // Parts, stages and slices may be empty.
  for (const char* text : {"dp1000", "pp100", "tp99", "dp3 pp5 tp7 microbatches=1000", "pp2 microbatches=3",
                           "pp2 schedule=naive microbatches=8", "tp2147483648"})
    EXPECT_EQ(refusal(text), "legal") << text;
}

TEST(StrategyRefusals, TheNearestIsLegal) {
  std::mt19937 random(7);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto w = workload::load("tiny", Settings{"layers=3", "optimizer=adamw", "weight_decay=0.1"});
  int refused = 0;
  for (int k = 0; k < 2000; ++k) {
    Strategy s{.dp = 1 + draw(3), .pp = 1 + draw(3), .tp = 1 + draw(3)};
    std::shuffle(s.order.begin(), s.order.end(), random);
    if (draw(2) == 0) s.schedule = "gpipe";
    for (int stage = draw(4); stage > 0; --stage) s.layers.push_back(draw(3));
    if (draw(4) == 0) s.optimizer = draw(2) == 0 ? "adamw" : "sgd";
    const std::int64_t ranks = draw(2) == 0 ? s.ranks() : 1 + draw(40);
    const Strategy nearest = nearest_legal(s, w, ranks);
    EXPECT_TRUE(refusals(nearest, w, ranks).empty()) << print(s) << " on " << ranks << ": " << print(nearest);
    if (refusals(s, w, ranks).empty()) {
      EXPECT_EQ(nearest, s);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 1990);
}

}  // namespace
}  // namespace shardproof::plan
