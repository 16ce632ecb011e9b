// SPDX-License-Identifier: Apache-2.0
// Training learns what there is to learn, and no more: on a Markov source the floor of the loss is known.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "impl/engine/testing.hpp"

namespace shardproof::engine {
namespace {

struct Learned {
  double mean = 0, floor = 0, standard_error = 0;
  bool near_the_floor() const { return mean <= 1.03 * floor; }
  bool honest() const { return mean >= floor - 4 * standard_error; }
};

/// 1,000 steps of `tiny` on 16 symbols; the mean loss of the last 100. `leak` shows the model the label of every
/// position.
Learned learn(bool leak) {
  const std::vector<std::string> settings{"vocab=16",
                                          "corpus=markov",
                                          "steps=1000",
                                          "batch=16",
                                          "optimizer=adam",
                                          "learning_rate=0.01",
                                          "learning_rate_schedule=linear",
                                          "documents=[]",
                                          "valid_labels=[]",
                                          "prompt=0",
                                          "dropout=0",
                                          "label_smoothing=0"};
  const auto w = workload::load("tiny", settings);
  const auto source = workload::markov_source(w);
  const workload::Corpus corpus(w);
  double sum = 0;
  std::int64_t tokens = 0;
  const auto train = [&](testing::RankRun& run) {
    for (std::int64_t t = 1; t <= w.steps; ++t) {
      auto batch = workload::batch(w, corpus, t);
      if (leak) {
        for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
          if (batch.labels[i] >= 0) batch.tokens[i] = batch.labels[i];
        }
      }
      const auto result = run.trainer.step(batch);
      if (t <= w.steps - 100) continue;
      sum += result.loss.value() * static_cast<double>(result.tokens);
      tokens += result.tokens;
    }
  };
  testing::on_ranks(w, Track::native, "dp1", train, {.poison = false});
  return {sum / static_cast<double>(tokens), source.entropy, std::sqrt(source.variance / static_cast<double>(tokens))};
}

TEST(Learning, ReachesTheEntropyOfTheSource) {
  const auto learned = learn(false);
  EXPECT_TRUE(learned.near_the_floor()) << learned.mean << " against " << learned.floor;
  EXPECT_TRUE(learned.honest()) << learned.mean << " against " << learned.floor << " - 4 * " << learned.standard_error;
}

TEST(Learning, AModelThatSeesItsLabelsIsCaught) {
  const auto learned = learn(true);
  EXPECT_FALSE(learned.honest()) << learned.mean << " against " << learned.floor << " - 4 * " << learned.standard_error;
}

}  // namespace
}  // namespace shardproof::engine
