// SPDX-License-Identifier: Apache-2.0
// The engine against the oracle, on one rank and on many. The long lists are `shardproof check --suite one_device` and
// `--suite conformance`.
#include "impl/engine/trainer.hpp"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "impl/engine/testing.hpp"
#include "kernels/core/errors.hpp"
#include "reference/oracle.hpp"

namespace shardproof::engine {
namespace {

using testing::on_ranks;
using testing::RankRun;

workload::Workload tiny(std::vector<std::string> settings = {}) { return workload::load("tiny", settings); }

const std::vector<std::string> everything = {"dropout=0.2",
                                             "label_smoothing=0.1",
                                             "layers=3",
                                             "shared_block=[0,2]",
                                             "window=3",
                                             "documents=[4,3]",
                                             "valid_labels=[2,5,0]",
                                             "unused=[0,7]",
                                             "frozen=[\"*.norm1.bias\"]",
                                             "optimizer=adamw",
                                             "weight_decay=0.1",
                                             "clip=0.05",
                                             "learning_rate_schedule=cosine"};

/// Every observable of `steps` steps, so that the first that differs names itself; on ranks, every copy as well.
void expect_same_bits(const workload::Workload& w, const std::string& strategy, std::int64_t steps,
                      const testing::RunOptions& options = {}) {
  const workload::Corpus corpus(w);
  const auto oracle = reference::make_oracle(w, Track::exact);
  on_ranks(
      w, Track::exact, strategy,
      [&](RankRun& run) {
        for (std::int64_t t = 1; t <= steps; ++t) {
          const auto batch = workload::batch(w, corpus, t);
          run.trainer.step(batch);
          const auto [ours, differences] = run.trainer.observe();
          if (!run.first()) continue;
          for (const auto& d : differences) ADD_FAILURE() << strategy << ": " << print(d);
          const auto theirs = oracle->step(batch);
          ASSERT_EQ(ours.size(), theirs.size());
          for (std::size_t i = 0; i < ours.size(); ++i) {
            ASSERT_EQ(ours[i].name, theirs[i].name);
            EXPECT_EQ(digest_of({&ours[i]}), digest_of({&theirs[i]}))
                << strategy << ": " << name_of(ours[i].kind) << " " << ours[i].name << " step " << t;
          }
          if (::testing::Test::HasFailure()) throw InternalError("the first step that differs");
        }
      },
      options);
}

TEST(Trainer, ExactTrackHasTheOraclesBits) { expect_same_bits(tiny(), "dp1", 3); }

TEST(Trainer, MicrobatchesChangeNoBit) {
  for (const std::string parts : {"1", "2", "3", "4", "7"}) expect_same_bits(tiny(), "dp1 microbatches=" + parts, 2);
}

TEST(Trainer, EverythingAtOnce) { expect_same_bits(tiny(everything), "dp1 microbatches=3", 3); }

TEST(Trainer, DataRanks) {
  for (const std::string n : {"2", "3", "5"}) expect_same_bits(tiny(everything), "dp" + n, 2);
  expect_same_bits(tiny(everything), "dp2 microbatches=3", 2);
}

TEST(Trainer, PipelineRanks) {
  for (const std::string n : {"2", "3", "5"}) {
    expect_same_bits(tiny(everything), "pp" + n, 2);
    expect_same_bits(tiny(everything), "pp" + n + " schedule=gpipe microbatches=3", 2);
  }
}

TEST(Trainer, TensorRanks) {
  for (const std::string n : {"2", "3", "4", "5"}) expect_same_bits(tiny(everything), "tp" + n, 2);
}

TEST(Trainer, KeyHeadsThatTensorRanksShare) {
  for (const std::string heads : {"1", "2", "3"}) {
    for (const std::string n : {"2", "3", "4", "7"}) {
      expect_same_bits(tiny({"heads=6", "kv_heads=" + heads, "hidden=24", "dropout=0.3"}), "tp" + n, 2);
    }
  }
}

TEST(Trainer, ThreeAxesAtOnce) {
  for (const std::string order : {"", " order=tp,pp,dp", " order=dp,tp,pp"})
    expect_same_bits(tiny(everything), "dp2 pp2 tp2" + order + " schedule=gpipe microbatches=2", 2);
  expect_same_bits(tiny(everything), "dp3 pp2 tp1 microbatches=2", 2, {.threads = {.delays = 7}});
}

TEST(Trainer, TheNextStepWritesNothingThatIsStillObserved) {
  // Rank 1 could send all it has and restart its gradients before rank 0 has looked at one.
  expect_same_bits(tiny(), "pp2", 2,
                   {.threads = {.send_depth = 1000, .injections = {"delay:rank=0,kind=receive,purpose=observe"}}});
}

TEST(Trainer, WhatIsObservedIsNotChargedToTheTraining) {
  // Short samples: the other rank's parameters, gradients and states are more than all else that rank 0 has at its
  // peak.
  const auto w = tiny({"hidden=96", "sequence=2", "batch=2"});
  const workload::Corpus corpus(w);
  const auto peak_of = [&](bool observes, std::int64_t limit) {
    std::int64_t peak = 0;
    on_ranks(w, Track::exact, "dp2",
             [&](RankRun& run) {
               for (std::int64_t t = 1; t <= 2; ++t) {
                 run.trainer.step(workload::batch(w, corpus, t));
                 if (observes) run.trainer.observe();
               }
               if (run.first()) peak = run.device.memory().peak_total();
             },
             {.memory_limit_bytes = limit});
    return peak;
  };
  const auto peak = peak_of(false, MemoryLedger::unlimited);
  EXPECT_EQ(peak_of(true, peak), peak);
}

TEST(Trainer, TiledAttentionChangesNoBit) {
  for (const std::string layout : {"dp1", "dp2 microbatches=3", "pp2 schedule=gpipe microbatches=2", "tp3", "tp4 pp2"})
    expect_same_bits(tiny(everything), layout + " attention=tiled", 2);
  expect_same_bits(tiny({"heads=6", "kv_heads=2", "hidden=24", "dropout=0.3"}), "tp4 attention=tiled", 2);
  expect_same_bits(tiny({"loss_scale=1099511627776"}), "tp2 attention=tiled", 2);
}

TEST(Trainer, TiledAttentionKeepsNoMatrixOfScores) {
  const auto w = tiny({"dropout=0.2"});
  const auto saved = [&](const std::string& strategy) {
    std::int64_t bytes = 0;
    on_ranks(w, Track::native, strategy, [&](RankRun& run) {
      run.trainer.step(workload::batch(w, workload::Corpus(w), 1));
      bytes = run.trainer.saved_bytes().at(1).bytes;
    });
    return bytes;
  };
  const auto rows = w.batch * w.heads * w.sequence;
  // Probabilities, their mask, and what it leaves; against two statistics.
  EXPECT_EQ(saved("dp1") - saved("dp1 attention=tiled"), rows * w.sequence * (4 + 1 + 4) - rows * 2 * 4);
}

TEST(Trainer, OverflowSkipsTheStepAndKeepsTheParameters) {
  const auto w = tiny({"loss_scale=1099511627776"});  // pushes gradients past 2^22
  const workload::Corpus corpus(w);
  for (const std::string strategy : {"dp1", "dp2", "pp2", "tp2"}) {
    on_ranks(w, Track::exact, strategy, [&](RankRun& run) {
      const auto before = digest_of(run.trainer.parameters().observables);
      auto batch = workload::batch(w, corpus, 1);
      batch.step = 0;  // so that the step's number does not tell the digests apart
      EXPECT_EQ(run.trainer.step(batch).skipped, Skipped::non_finite);
      EXPECT_EQ(digest_of(run.trainer.parameters().observables), before);
    });
    expect_same_bits(w, strategy, 2);
  }
}

TEST(Trainer, AParameterOutOfRangeOverflowsEveryLaterStep) {
  // An update of 2^23; the first stage's norms are read by no kernel of the last stage.
  const auto w = tiny({"optimizer=sgd", "learning_rate=1e12"});
  for (const std::string strategy : {"dp1", "pp2"}) expect_same_bits(w, strategy, 3);
}

TEST(Trainer, AStepWithoutLabelsIsSkipped) {
  const auto w = tiny({"valid_labels=[0]"});
  const workload::Corpus corpus(w);
  on_ranks(w, Track::native, "dp1", [&](RankRun& run) {
    const auto result = run.trainer.step(workload::batch(w, corpus, 1));
    EXPECT_EQ(result.skipped, Skipped::no_label);
    EXPECT_FALSE(result.loss);
  });
  for (const std::string strategy : {"dp1", "dp3", "pp2 tp2"}) expect_same_bits(w, strategy, 2);
}

TEST(Trainer, NothingIsLeftBehindByAStep) {
  const auto w = tiny();
  const workload::Corpus corpus(w);
  on_ranks(w, Track::f64, "dp2 pp2 tp2 schedule=gpipe microbatches=2", [&](RankRun& run) {
    run.trainer.step(workload::batch(w, corpus, 1));
    EXPECT_EQ(run.device.memory().current(Category::activation), 0);
    EXPECT_EQ(run.device.memory().current(Category::workspace), 0);
    EXPECT_EQ(run.device.memory().current(Category::communication), 0);
  });
}

TEST(Trainer, AMemoryLimitIsKept) {
  EXPECT_THROW(on_ranks(tiny(), Track::exact, "dp1", [](RankRun&) {}, {.memory_limit_bytes = 100'000}), OutOfMemory);
}

/// Flips the lowest bit of one element of one rank's copy, just after it is final.
struct Flip {
  Rank rank;
  Observed kind;
  std::string name;
  std::size_t index;
  std::int64_t step;

  Tamper tamper() const {
    return {.tensor =
                [f = *this](std::int64_t at, Observed what, const std::string& of, Queue& queue, const Tensor& t) {
                  if (at != f.step || what != f.kind || of != f.name || queue.device().rank() != f.rank) return;
                  queue.submit("flip", [t, i = f.index](KernelScope& scope) {
                    if (t.dtype() == Dtype::fixed) scope.update<Fixed>(t)[i].raw ^= 1;
                    if (t.dtype() == Dtype::f64) {
                      auto* x = scope.update<double>(t) + i;
                      *x = std::bit_cast<double>(std::bit_cast<std::uint64_t>(*x) ^ 1);
                    }
                  });
                },
            .scalar = {},
            .activation = {}};
  }
};

TEST(Trainer, AFlippedBitOfAnyCopyIsSeen) {
  const auto w = tiny();
  const workload::Corpus corpus(w);
  // Rank 3 of dp2 tp2 holds copies of norms, and rank 0 the primary ones.
  for (const Flip& flip : {Flip{Rank{3}, Observed::gradient, "blocks.0.norm1.weight", 5, 2},
                           Flip{Rank{2}, Observed::parameter, "blocks.1.mlp.up.weight", 17, 1},
                           Flip{Rank{1}, Observed::state, "final_norm.bias.second_moment", 2, 2}}) {
    std::vector<ReplicaDifference> found;
    on_ranks(w, Track::exact, "dp2 tp2",
             [&](RankRun& run) {
               for (std::int64_t t = 1; t <= flip.step; ++t) {
                 run.trainer.step(workload::batch(w, corpus, t));
                 const auto seen = run.trainer.observe().differences;
                 if (run.first()) found.insert(found.end(), seen.begin(), seen.end());
               }
             },
             {.tamper = flip.tamper()});
    const auto hit = [&](const ReplicaDifference& d) {
      return d.kind == flip.kind && d.name == flip.name && d.rank == flip.rank && d.step == flip.step;
    };
    EXPECT_TRUE(std::ranges::any_of(found, hit)) << flip.name << ": " << found.size() << " differences";
  }
}

}  // namespace
}  // namespace shardproof::engine
