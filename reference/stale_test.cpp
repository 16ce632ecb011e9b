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
  EXPECT_EQ(digests.size(), 5u);
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
      std::vector<Values> in_order;
      for (const auto& p : workload::parameters(plain))
        if (p.trainable) in_order.push_back(gradients.at(p.name));
      auto& made = versions.emplace_back();
      for (const auto& o : updated->update(t, in_order, 1))
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

}  // namespace
}  // namespace shardproof::reference
