// SPDX-License-Identifier: Apache-2.0
#include "harness/twin.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

TEST(Twin, TheMedianAndItsInterval) {
  EXPECT_EQ(median_ratio({2}).median, 2);
  const auto few = median_ratio({3, 1, 2});
  EXPECT_EQ(few.low, 1);
  EXPECT_EQ(few.median, 2);
  EXPECT_EQ(few.high, 3);
  // Of 6, all: 2 (1/2)^6 = 0.03. Of 9, the second to the eighth: 2 (1 + 9) (1/2)^9 = 0.039.
  EXPECT_EQ(median_ratio({1, 2, 3, 4, 5, 6}).low, 1);
  const auto nine = median_ratio({1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(nine.low, 2);
  EXPECT_EQ(nine.high, 8);
  EXPECT_EQ(median_ratio({1, 2, 3, 4}).median, 2.5);
}

TEST(Twin, ComputesAsTheRunDoes) {
  TrainingJob job{.workload = workload::load("tiny", std::vector<std::string>{"batch=4"}), .track = Track::native};
  job.strategy =
      plan::parse_strategy("dp2 pp2 tp2 schedule=gpipe microbatches=2 order=tp,dp,pp layers=1,1 attention=tiled");
  const TrainingJob twin = twin_of(job);
  EXPECT_EQ(plan::print(twin.strategy), "microbatches=2 attention=tiled");
  EXPECT_EQ(twin.workload.batch, 2);
}

TEST(Twin, MeasuresBothSides) {
  TrainingJob job{.workload = workload::load("tiny", std::vector<std::string>{"batch=4"}), .track = Track::native};
  job.strategy = plan::parse_strategy("dp2 tp2");
  std::vector<std::int64_t> done;
  const auto rounds =
      against_twin(job, workload::Corpus(job.workload), 2, 3, [&](std::int64_t k) { done.push_back(k); });
  EXPECT_EQ(done, (std::vector<std::int64_t>{0, 1, 2}));
  ASSERT_EQ(rounds.size(), 2u);
  for (const auto& round : rounds) {
    EXPECT_GT(round.run_tokens_per_second, 0);
    EXPECT_GT(round.twins_tokens_per_second, 0);
  }
  // 3 steps are no whole number of turns.
  TrainingJob in_turn = job;
  in_turn.workload.tied_head = false;
  in_turn.strategy = plan::parse_strategy("pp2 schedule=pipedream replicas=2,1");
  in_turn.workload = plan::with_program_keys(in_turn.workload, in_turn.strategy);
  EXPECT_GT(against_twin(in_turn, workload::Corpus(in_turn.workload), 1, 3).at(0).efficiency(), 0);
  job.strategy.dp = 3;
  try {
    against_twin(job, workload::Corpus(job.workload), 1, 2);
    FAIL();
  } catch (const NotSupported& error) {
    EXPECT_NE(std::string(error.what()).find("--set batch=6 has one"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace shardproof::harness
