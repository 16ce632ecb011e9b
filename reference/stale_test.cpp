// SPDX-License-Identifier: Apache-2.0
#include "reference/stale.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "reference/oracle.hpp"
#include "reference/testing/observed.hpp"
#include "reference/testing/workloads.hpp"

namespace shardproof::reference {
namespace {

using workload::StaleProgram;
using workload::Workload;
using Rule = StaleProgram::Rule;

Workload stale(Rule rule, const std::vector<std::int64_t>& layers, std::vector<std::string> settings = {}) {
  settings.insert(settings.begin(), {"layers=3", "tied_head=false", "learning_rate=0.25", "steps=8"});
  Workload w = testing::small(settings);
  w.stale = {rule, layers};
  return w;
}

std::vector<Observable> run(const Workload& w, std::int64_t steps) {
  const auto oracle = make_oracle(w, Track::exact);
  const workload::Corpus corpus(w);
  std::vector<Observable> all;
  for (std::int64_t t = 1; t <= steps; ++t)
    std::ranges::move(oracle->step(workload::batch(w, corpus, t)), std::back_inserter(all));
  return all;
}

// Three stages: the last reads the newest version, the first one that is two updates old.
TEST(Stale, VersionsAreThoseOfThePapers) {
  const StaleProgram stashed{Rule::stashed, {1, 1, 1}}, vertical{Rule::vertical_sync, {1, 1, 1}},
      doubled{Rule::double_buffered, {1, 1, 1}};
  const auto of = [](const StaleProgram& program, std::int64_t step) {
    std::vector<std::int64_t> versions;
    for (std::int64_t stage = 0; stage < 3; ++stage) versions.push_back(version_read(program, stage, step));
    return versions;
  };
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(of(stashed, 1), (V{0, 0, 0}));
  EXPECT_EQ(of(stashed, 2), (V{0, 0, 1}));
  EXPECT_EQ(of(stashed, 6), (V{3, 4, 5}));
  EXPECT_EQ(of(vertical, 2), (V{0, 0, 0}));
  EXPECT_EQ(of(vertical, 6), (V{3, 3, 3}));
  EXPECT_EQ(of(doubled, 1), (V{0, 0, 0}));
  EXPECT_EQ(of(doubled, 2), (V{0, 0, 0}));
  EXPECT_EQ(of(doubled, 6), (V{4, 4, 4}));
}

// Ranks 2,1,1: the first stage goes forward with ceil(4/2) = 2 minibatches a rank (ibid., section 3.2), so that it
// reads what one update of two minibatches has not yet made; the others are as without replicas.
TEST(Stale, RanksOfAStageTakeStepsInTurn) {
  const StaleProgram stashed{Rule::stashed, {1, 1, 1}, {2, 1, 1}}, vertical{Rule::vertical_sync, {1, 1, 1}, {4, 2, 1}};
  const auto of = [](const StaleProgram& program, std::int64_t stage) {
    std::vector<std::int64_t> versions;
    for (std::int64_t step = 1; step <= 9; ++step) versions.push_back(version_read(program, stage, step));
    return versions;
  };
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(of(stashed, 0), (V{0, 0, 0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(of(stashed, 1), (V{0, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(of(stashed, 2), (V{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  // Seven ranks: stage 0 is one update of four behind; the others read the weights of as many minibatches.
  EXPECT_EQ(of(vertical, 0), (V{0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(of(vertical, 1), (V{0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(of(vertical, 2), (V{0, 0, 0, 0, 0, 0, 0, 0, 4}));

  Workload w = stale(Rule::stashed, {1, 1, 1});
  w.stale = stashed;
  EXPECT_EQ(steps_of_update(w, "blocks.0.norm1.bias", 3), 0);
  EXPECT_EQ(steps_of_update(w, "blocks.0.norm1.bias", 4), 2);
  EXPECT_EQ(steps_of_update(w, "head.weight", 3), 1);
  w.stale = {};
  EXPECT_EQ(steps_of_update(w, "head.weight", 3), 1);
}

TEST(Stale, ParametersLieOnTheirStages) {
  Workload w = stale(Rule::stashed, {0, 2, 1});
  EXPECT_EQ(stage_of(w, "token_embedding.weight"), 0);
  EXPECT_EQ(stage_of(w, "unused.0"), 0);
  EXPECT_EQ(stage_of(w, "blocks.0.norm1.bias"), 1);
  EXPECT_EQ(stage_of(w, "blocks.2.norm1.bias"), 2);
  EXPECT_EQ(stage_of(w, "head.weight"), 2);
  w.shared_block = {0, 1};
  EXPECT_EQ(stage_of(w, "blocks.0.norm1.bias"), 1);
  w.shared_block = {0, 2};
  EXPECT_THROW(stage_of(w, "blocks.0.norm1.bias"), BadInput);
  w.tied_head = true;
  EXPECT_THROW(stage_of(w, "token_embedding.weight"), BadInput);
}

TEST(Stale, NothingIsClipped) {
  Workload w = stale(Rule::stashed, {2, 1});
  EXPECT_NO_THROW(make_oracle(w, Track::exact));
  w.clip = 1;
  EXPECT_THROW(make_oracle(w, Track::exact), BadInput);
}

TEST(Stale, OnOneStageItIsTheStepOfSection8) {
  Workload plain = stale(Rule::none, {});
  for (const Rule rule : {Rule::stashed, Rule::vertical_sync})
    EXPECT_EQ(digest_of(run(stale(rule, {3}), 4)), digest_of(run(plain, 4)));
  EXPECT_NE(digest_of(run(stale(Rule::double_buffered, {3}), 4)), digest_of(run(plain, 4)));
}

TEST(Stale, EveryRuleAndEveryCutIsAnotherProgram) {
  std::set<std::string> digests;
  for (const Rule rule : {Rule::stashed, Rule::vertical_sync, Rule::double_buffered})
    digests.insert(digest_of(run(stale(rule, {1, 1, 1}), 5)));
  digests.insert(digest_of(run(stale(Rule::stashed, {2, 1}), 5)));
  digests.insert(digest_of(run(stale(Rule::stashed, {1, 2}), 5)));
  for (const std::vector<std::int64_t>& replicas : {std::vector<std::int64_t>{2, 1, 1}, {1, 2, 1}, {2, 2, 2}}) {
    Workload w = stale(Rule::stashed, {1, 1, 1});
    w.stale.replicas = replicas;
    digests.insert(digest_of(run(w, 4)));
  }
  EXPECT_EQ(digests.size(), 8u);
}

// The program written once more with the oracle of section 8: gradients where weights are mixed by hand, updates where
// they are the newest.
TEST(Stale, IsGradientsOfMixedVersionsAndUpdatesOfTheNewest) {
  for (const std::string optimizer : {"sgd", "momentum", "adam"}) {
    const Workload w =
        stale(Rule::stashed, {1, 1, 1}, {"optimizer=" + optimizer, "learning_rate_schedule=linear", "warmup_steps=2"});
    Workload plain = w;
    plain.stale = {};
    const workload::Corpus corpus(w);
    const auto oracle = make_oracle(w, Track::exact), mixed = make_oracle(plain, Track::exact),
               updated = make_oracle(plain, Track::exact);
    std::vector<std::map<std::string, Values>> versions(1);
    for (const auto& [name, parameter] : initial_parameters<Fixed>(plain)) versions[0][name] = parameter.value.values();
    for (std::int64_t t = 1; t <= 6; ++t) {
      const auto batch = workload::batch(w, corpus, t);
      for (const auto& [name, newest] : versions.back()) {
        const std::int64_t late = 2 - stage_of(w, name);
        const auto version = static_cast<std::size_t>(std::max<std::int64_t>(t - 1 - late, 0));
        mixed->set(Observed::parameter, name, versions[version].at(name));
      }
      std::map<std::string, Values> gradients;
      for (const auto& o : mixed->step(batch))
        if (o.kind == Observed::gradient) gradients[o.name] = o.values;
      auto& made = versions.emplace_back();
      for (const auto& o : updated->update(t, gradients, 1))
        if (o.kind == Observed::parameter) made[o.name] = o.values;
      for (const auto& o : oracle->step(batch)) {
        if (o.kind == Observed::gradient) {
          EXPECT_EQ(o.values, gradients.at(o.name)) << optimizer << " " << t;
        }
        if (o.kind == Observed::parameter) {
          EXPECT_EQ(o.values, made.at(o.name)) << optimizer << " " << t;
        }
      }
    }
  }
}

// One stage on two ranks, written once more with the oracle of section 8: a sum of two gradients at the same weights,
// the rate of the second step, and a shown step of two; where one minibatch has no label the other's gradient is the
// update.
TEST(Stale, AnUpdateIsTheSumOfItsRanksGradients) {
  for (const std::string labels : {"4", "0,4"}) {  // with 0,4 the short batch of every second step has none
    Workload w = stale(
        Rule::stashed, {3},
        {"optimizer=momentum", "learning_rate_schedule=linear", "batch=2", "samples=3", "valid_labels=" + labels});
    Workload plain = w;
    plain.stale = {};
    w.stale.replicas = {2};
    const workload::Corpus corpus(w);
    const auto oracle = make_oracle(w, Track::f64), at = make_oracle(plain, Track::f64),
               updated = make_oracle(plain, Track::f64);
    std::vector<std::map<std::string, Values>> versions(1);
    for (const auto& [name, parameter] : initial_parameters<double>(plain))
      versions[0][name] = parameter.value.values();
    for (std::int64_t t = 2; t <= 6; t += 2) {
      const auto read = static_cast<std::size_t>(std::max<std::int64_t>(t / 2 - 1, 0));
      std::map<std::string, Values> sum;
      for (const std::int64_t step : {t - 1, t}) {
        for (const auto& [name, values] : versions[read]) at->set(Observed::parameter, name, values);
        for (const auto& o : at->step(workload::batch(w, corpus, step))) {
          if (o.kind != Observed::gradient) continue;
          auto total = as_doubles(o.values);
          if (step == t)
            for (std::size_t i = 0; i < total.size(); ++i) total[i] += as_doubles(sum.at(o.name))[i];
          sum[o.name] = std::move(total);
        }
      }
      auto& made = versions.emplace_back();
      for (const auto& o : updated->update(t, sum, 1))
        if (o.kind == Observed::parameter) made[o.name] = o.values;
      EXPECT_NE(made.at("head.weight"), versions[versions.size() - 2].at("head.weight"));
      EXPECT_EQ(workload::batch(w, corpus, t).label_count == 0, labels == "0,4");
      for (const auto& o : oracle->step(workload::batch(w, corpus, t - 1)))
        EXPECT_FALSE(o.kind == Observed::gradient || o.kind == Observed::parameter || o.kind == Observed::state);
      std::size_t tensors = 0;
      for (const auto& o : oracle->step(workload::batch(w, corpus, t))) {
        if (o.kind == Observed::gradient) {
          EXPECT_EQ(o.values, sum.at(o.name)) << t;
        } else if (o.kind == Observed::parameter) {
          EXPECT_EQ(o.values, made.at(o.name)) << t;
          ++tensors;
        }
      }
      EXPECT_EQ(tensors, workload::parameters(w).size());
    }
  }
}

}  // namespace
}  // namespace shardproof::reference
