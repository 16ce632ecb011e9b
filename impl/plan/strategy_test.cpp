// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

std::string refusal(std::string_view text, std::optional<std::int64_t> ranks = {}) {
  try {
    parse_strategy(text, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Strategy, DefaultsPrintAsOneDevice) {
  EXPECT_EQ(print(Strategy{}), "dp1");
  for (const char* text : {"dp1", "microbatches=1", "dp1 pp1 tp1 order=pp,dp,tp schedule=naive layers=balanced",
                           "sync=all_reduce", "tp01"})
    EXPECT_EQ(parse_strategy(text), Strategy{}) << text;
}

TEST(Strategy, ReadsEveryKey) {
  const Strategy all{.dp = 2,
                     .pp = 3,
                     .tp = 4,
                     .order = {Axis::tp, Axis::pp, Axis::dp},
                     .schedule = "gpipe",
                     .microbatches = 5,
                     .layers = {3, 0, 2},
                     .attention = "tiled",
                     .sync = "all_reduce",
                     .optimizer = "sgd",
                     .clip = 0.25};
  EXPECT_EQ(parse_strategy(
                "clip=0.25 optimizer=sgd sync=all_reduce attention=tiled layers=3,0,2 microbatches=5 schedule=gpipe "
                "order=tp,pp,dp tp4 pp3 dp2"),
            all);
  EXPECT_EQ(print(all),
            "dp2 pp3 tp4 order=tp,pp,dp schedule=gpipe microbatches=5 layers=3,0,2 attention=tiled optimizer=sgd "
            "clip=0.25");
  EXPECT_EQ(all.ranks(), 24);
  EXPECT_EQ(parse_strategy("clip=off").clip, 0.0);
  EXPECT_EQ(print(parse_strategy("clip=off")), "clip=off");
}

TEST(Strategy, ThePrintedFormParsesBack) {
  std::mt19937 random(5);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::set<std::string> texts;
  for (int k = 0; k < 500; ++k) {
    Strategy s{.dp = 1 + draw(4), .pp = 1 + draw(4), .tp = 1 + draw(4)};
    std::shuffle(s.order.begin(), s.order.end(), random);
    if (draw(2) == 0) s.schedule = "gpipe";
    s.microbatches = 1 + draw(1000);
    for (int stage = draw(4); stage > 0; --stage) s.layers.push_back(draw(9));
    if (draw(2) == 0) s.attention = "tiled";
    if (draw(2) == 0) s.optimizer = draw(2) == 0 ? "adam" : "momentum";
    if (draw(2) == 0) s.clip = draw(3) == 0 ? 0.0 : std::ldexp(1.0 + draw(1000) / 7.0, draw(40) - 20);
    const std::string text = print(s);
    EXPECT_EQ(parse_strategy(text), s) << text;
    EXPECT_EQ(print(parse_strategy(text)), text);
    texts.insert(text);
  }
  EXPECT_GT(texts.size(), 450u);
}

TEST(Strategy, IsCanonical) {
  EXPECT_EQ(print(parse_strategy("  microbatches=4   dp1 ")), "microbatches=4");
  EXPECT_EQ(print(parse_strategy("tp2\tmicrobatches=04\ndp2 order=pp,dp,tp schedule=naive")), "dp2 tp2 microbatches=4");
}

std::string all_keys() {
  std::string text;
  for (const auto& key : strategy_keys()) text += (text.empty() ? "" : ", ") + key.name;
  return text;
}

TEST(Strategy, UnknownKeysAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal("dp1 microbatch=4"), "unknown strategy key \"microbatch\": did you mean \"microbatches\"?");
  EXPECT_EQ(refusal("dq2"), "unknown strategy key \"dq\": did you mean \"dp\"?");
  EXPECT_EQ(refusal("4"), "unknown strategy key \"4\": legal are " + all_keys());
  EXPECT_EQ(refusal("DP2"), "unknown strategy key \"DP\": did you mean \"dp\"?");
}

TEST(Strategy, UnknownValuesAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal("schedule=gpip"), "\"schedule=gpip\": unknown schedule \"gpip\": did you mean \"gpipe\"?");
  EXPECT_EQ(refusal("sync=allreduce"), "\"sync=allreduce\": unknown sync \"allreduce\": did you mean \"all_reduce\"?");
  EXPECT_EQ(refusal("optimizer=adm"), "\"optimizer=adm\": unknown optimizer \"adm\": did you mean \"adam\"?");
}

TEST(Strategy, EveryFindingIsReported) {
  EXPECT_EQ(refusal("dp0 microbatches=x foo order=pp,dp layers=1,-1 clip=0 tp2 tp4"),
            "\"dp0\": dp must be a whole number from 1 to 2147483648\n"
            "\"microbatches=x\": microbatches must be a whole number from 1 to 2147483648\n"
            "unknown strategy key \"foo\": legal are " +
                all_keys() +
                "\n"
                "\"order=pp,dp\": order must be a permutation of pp,dp,tp\n"
                "\"layers=1,-1\": layers must be balanced or a list as 3,2,2 of whole numbers from 0 to 2147483648\n"
                "\"clip=0\": clip must be off or a number above 0\n"
                "strategy key \"tp\" is doubled");
}

TEST(Strategy, DoubledKeysAreRefusedEvenWhenTheyAgree) {
  EXPECT_EQ(refusal("dp1 dp1"), "strategy key \"dp\" is doubled");
  EXPECT_EQ(refusal("dp2 dp4"), "strategy key \"dp\" is doubled");
  EXPECT_EQ(refusal("dp* dp2", 4), "strategy key \"dp\" is doubled");
  EXPECT_EQ(refusal("microbatches=0 microbatches=2"),
            "\"microbatches=0\": microbatches must be a whole number from 1 to 2147483648\n"
            "strategy key \"microbatches\" is doubled");
}

TEST(Strategy, WrongFormsAreRefused) {
  EXPECT_EQ(refusal("dp=1"), "\"dp=1\": dp is written as in \"dp2\"");
  EXPECT_EQ(refusal("microbatches4"), "\"microbatches4\": microbatches is written as in \"microbatches=2\"");
  EXPECT_EQ(refusal("layers"), "\"layers\": layers is written as in \"layers=3,2,2\"");
  EXPECT_EQ(refusal("schedule"), "\"schedule\": schedule is written as in \"schedule=pipedream_2bw\"");
  EXPECT_EQ(refusal("clip"), "\"clip\": clip is written as in \"clip=1\"");
  EXPECT_EQ(refusal(""), "the strategy is empty: one device is \"dp1\"");
  for (const char* text : {"dp",
                           "dp-1",
                           "dp+1",
                           "dp1.5",
                           "dp2147483649",
                           "dp99999999999999999999",
                           "microbatches=",
                           "microbatches=-3",
                           " ",
                           "pp*",
                           "order=pp,pp,tp",
                           "order=pp,dp,tp,pp",
                           "order=",
                           "layers=",
                           "layers=3,",
                           "layers=2147483649",
                           "clip=nan",
                           "clip=inf",
                           "clip=-1",
                           "clip=1x",
                           "clip=",
                           "schedule=",
                           "optimizer=",
                           "optimizer=the workload's"})
    EXPECT_THROW(parse_strategy(text), BadInput) << text;
  EXPECT_EQ(parse_strategy("dp2147483648").dp, std::int64_t{1} << 31);
}

TEST(Strategy, MoreRanksThanThereCanBeAreRefused) {
  EXPECT_EQ(refusal("dp65536 tp65536"), "dp65536 pp1 tp65536: at most 2147483648 ranks are possible");
  EXPECT_EQ(refusal("dp2147483648 pp2147483648 tp2147483648"),
            "dp2147483648 pp2147483648 tp2147483648: at most 2147483648 ranks are possible");
  EXPECT_EQ(parse_strategy("dp65536 tp32768").ranks(), std::int64_t{1} << 31);
}

TEST(Strategy, AStarTakesTheRestOfTheRanks) {
  EXPECT_EQ(print(parse_strategy("dp* tp2", 6)), "dp3 tp2");
  EXPECT_EQ(print(parse_strategy("tp2 pp3 dp*", 6)), "pp3 tp2");
  EXPECT_EQ(print(parse_strategy("dp*", 7)), "dp7");
  EXPECT_EQ(print(parse_strategy("tp* dp2", 6)), "dp2 tp3");
  EXPECT_EQ(print(parse_strategy("pp*", 1)), "dp1");
  EXPECT_EQ(refusal("tp* dp4", 6), "tp* with dp4: 4 does not divide 6 ranks; the nearest legal strategy is dp3 tp2");
  EXPECT_EQ(refusal("dp* tp*", 4), "\"tp*\": dp* takes the rest already");
  EXPECT_EQ(refusal("dp* tp4", 6), "dp* with tp4: 4 does not divide 6 ranks; the nearest legal strategy is dp2 tp3");
  EXPECT_EQ(refusal("dp* tp4", 1), "dp* with tp4: 4 does not divide 1 rank; the nearest legal strategy is dp1");
  EXPECT_EQ(refusal("dp*"), "\"dp*\": the number of ranks, of which it takes the rest, is not given");
  EXPECT_THROW(parse_strategy("dp* tp4", 6), NotSupported);
  EXPECT_THROW(parse_strategy("dp*", 0), BadInput);
}

TEST(Strategy, OtherStrategiesDoNotAskForTheRanks) { EXPECT_EQ(parse_strategy("dp2", 3), parse_strategy("dp2")); }

TEST(Strategy, ProgramKeysReplaceTheWorkloads) {
  const workload::Workload w = workload::load("tiny");
  const auto changed = with_program_keys(w, parse_strategy("dp2 optimizer=momentum clip=0.5"));
  EXPECT_EQ(changed.optimizer, workload::OptimizerKind::momentum);
  EXPECT_EQ(changed.clip, 0.5);
  EXPECT_EQ(with_program_keys(changed, parse_strategy("clip=off")).clip, 0);
  EXPECT_EQ(print(with_program_keys(w, parse_strategy("dp2 pp2 schedule=gpipe microbatches=4"))), print(w));
}

TEST(Strategy, TheContractIsThatOfTheTrack) {
  for (const auto track : {Track::exact, Track::f64, Track::native}) {
    EXPECT_EQ(contract(parse_strategy("dp2 pp2 tp2 schedule=gpipe microbatches=3 clip=1"), track), "EXACT");
    EXPECT_EQ(contract(parse_strategy("tp2 attention=tiled"), track), track == Track::exact ? "EXACT" : "ROUNDED");
  }
}

TEST(Strategy, TheTableListsEveryKeyOnce) {
  const std::vector<std::string> standards = {"dp1",
                                              "pp1",
                                              "tp1",
                                              "order=pp,dp,tp",
                                              "schedule=naive",
                                              "chunks=the schedule's",
                                              "vertical_sync=off",
                                              "replicas=one",
                                              "microbatches=1",
                                              "layers=balanced",
                                              "boundary=whole",
                                              "attention=stored",
                                              "sync=all_reduce",
                                              "optimizer=the workload's",
                                              "clip=the workload's"};
  const auto keys = strategy_keys();
  ASSERT_EQ(keys.size(), standards.size());
  for (std::size_t k = 0; k < keys.size(); ++k) {
    EXPECT_EQ(keys[k].standard, standards[k]);
    const std::set<std::string> programs = {"optimizer", "clip", "vertical_sync", "replicas"};
    EXPECT_EQ(keys[k].program, programs.contains(keys[k].name)) << keys[k].name;
  }
  EXPECT_EQ(keys[4].values,
            "schedule=naive | gpipe | one_f_one_b | interleaved | zb_h1 | zb_h2 | zb_v | dualpipe | pipedream | "
            "pipedream_2bw | file:PATH");
  EXPECT_EQ(keys[7].values, "replicas=one | N,N,...");
  EXPECT_EQ(keys[9].values, "layers=balanced | N,N,...");
  EXPECT_EQ(keys[10].values, "boundary=whole | scattered");
  EXPECT_EQ(keys[11].values, "attention=stored | tiled");
  EXPECT_EQ(keys[13].values, "optimizer=sgd | momentum | adam | adamw");
}

TEST(Strategy, OneScheduleHasOneText) {
  EXPECT_EQ(print(parse_strategy("pp2 schedule=1f1b")), "pp2 schedule=one_f_one_b");
  EXPECT_EQ(print(parse_strategy("pp2 chunks=2 schedule=interleaved")), "pp2 schedule=interleaved");
  EXPECT_EQ(print(parse_strategy("pp2 chunks=3 schedule=interleaved")), "pp2 schedule=interleaved chunks=3");
  EXPECT_EQ(print(parse_strategy("pp2 schedule=gpipe chunks=1")), "pp2 schedule=gpipe");
  EXPECT_EQ(schedule_shape(parse_strategy("pp2 schedule=zb_v")).stages(), 4);
  EXPECT_EQ(schedule_shape(parse_strategy("pp2 schedule=dualpipe")).stages(), 2);
}

TEST(Strategy, ReplicasMakeTheMeshLargerThanThePipelineIsLong) {
  const Strategy s = parse_strategy("dp2 pp3 tp2 schedule=pipedream replicas=2,1,1");
  EXPECT_EQ(print(s), "dp2 pp3 tp2 schedule=pipedream replicas=2,1,1");
  EXPECT_EQ(s.pipeline_ranks(), 4);
  EXPECT_EQ(s.ranks(), 16);
  EXPECT_EQ(mesh_of(s).ranks(), 16);
  EXPECT_EQ(schedule_shape(s, 6).stages(), 3);
  EXPECT_EQ(parse_strategy("pp2 schedule=pipedream replicas=1,1"), parse_strategy("pp2 schedule=pipedream"));
  EXPECT_EQ(parse_strategy("pp2 schedule=pipedream replicas=one"), parse_strategy("pp2 schedule=pipedream"));
  EXPECT_EQ(parse_strategy("dp* pp2 schedule=pipedream replicas=2,1", 6).dp, 2);
  EXPECT_EQ(refusal("pp2 schedule=pipedream replicas=2,0"),
            "\"replicas=2,0\": replicas must be one or a list as 3,2,2 of whole numbers from 1 to 2147483648");
  EXPECT_EQ(refusal("pp2 schedule=pipedream replicas=2147483648,1"),
            "dp1 pp2147483649 tp1: at most 2147483648 ranks are possible");
  EXPECT_THROW(parse_strategy("pp* schedule=pipedream replicas=2,1", 6), BadInput);
}

}  // namespace
}  // namespace shardproof::plan
