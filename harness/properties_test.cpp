// SPDX-License-Identifier: Apache-2.0
#include "harness/properties.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

bool holds(std::string_view id, const std::string& text, std::vector<Shown> shows = {Shown::gradient}) {
  const auto property = std::ranges::find(properties(), id, &Property::id);
  return property->holds(facts_of(parse_case(text + " | exact | cpu | threads"), shows));
}

TEST(Properties, AreNumberedAndSomeNeedTechniques) {
  ASSERT_EQ(properties().size(), 33u);
  std::set<std::string_view> ids;
  for (const auto& property : properties()) {
    ids.insert(property.id);
    EXPECT_TRUE(property.holds != nullptr || !property.techniques.empty()) << property.id;
  }
  EXPECT_EQ(ids.size(), 33u);
  EXPECT_EQ(*ids.begin(), "I01");
  EXPECT_EQ(*ids.rbegin(), "I33");
}

TEST(Properties, WhatIsBuilt) {
  for (const char* name : {"dp", "schedule=gpipe", "sync=all_reduce", "optimizer=adamw", "dropout", "check"})
    EXPECT_TRUE(is_built(name)) << name;
  for (const char* name : {"schedule=gpip", "schedule=pipe", "zeroes", "", "=", "schedule=", "sync=reduce"})
    EXPECT_FALSE(is_built(name)) << name;
}

/// Each with a case beside it that lacks just that.
TEST(Properties, AreDecidedByTheInput) {
  struct {
    const char *id, *has, *lacks;
  } const all[] = {
      {"I01", "tiny valid_labels=1,7 batch=2 | dp1 microbatches=2 | 1 rank",
       "tiny valid_labels=3,7 batch=2 | dp1 microbatches=2 | 1 rank"},
      {"I02", "tiny valid_labels=1,7 batch=2 | dp2 | 2 ranks", "tiny valid_labels=7 batch=2 | dp2 | 2 ranks"},
      {"I03", "tiny valid_labels=0,7 batch=2 | dp2 | 2 ranks", "tiny valid_labels=0 batch=2 | dp2 | 2 ranks"},
      {"I04", "tiny batch=4 samples=7 | dp2 | 2 ranks", "tiny batch=4 samples=6 | dp2 | 2 ranks"},
      {"I05", "tiny unused=0,1,7 | dp2 | 2 ranks", "tiny unused=0,2,7 | dp2 | 2 ranks"},
      {"I07", "tiny | tp3 | 3 ranks", "tiny | tp4 | 4 ranks"},
      {"I08", "tiny | dp3 tp2 | 6 ranks", "tiny | dp2 tp2 | 4 ranks"},
      {"I09", "tiny layers=4 shared_block=0,1 | pp2 | 2 ranks", "tiny layers=4 shared_block=0,2 | pp2 | 2 ranks"},
      {"I10", "tiny dropout=0.1 | tp2 | 2 ranks", "tiny dropout=0.1 | pp2 | 2 ranks"},
      {"I11", "tiny | pp2 microbatches=3 | 2 ranks", "tiny | pp2 microbatches=2 | 2 ranks"},
      {"I12", "tiny layers=7 | pp2 schedule=interleaved | 2 ranks",
       "tiny layers=8 | pp2 schedule=interleaved | 2 ranks"},
      {"I13", "tiny | dp1 microbatches=3 | 1 rank", "tiny batch=2 | dp1 microbatches=3 | 1 rank"},
      {"I14", "tiny | dp2 | 2 ranks", "tiny steps=2 | dp2 | 2 ranks"},
      {"I15", "tiny label_smoothing=0.1 | dp2 | 2 ranks",
       "tiny label_smoothing=0.1 initialization=gpt2 | dp2 | 2 ranks"},
      {"I16", "tiny vocab=11 batch=9 | tp3 | 3 ranks", "tiny vocab=12 batch=9 | tp3 | 3 ranks"},
      // Labels in both slices, none of them the last symbol.
      {"I16", "tiny vocab=5 batch=9 | tp2 | 2 ranks", "tiny vocab=5 batch=1 seed=29 | tp2 | 2 ranks"},
      {"I18", "tiny kv_heads=1 | tp2 | 2 ranks", "tiny kv_heads=2 | tp2 | 2 ranks"},
      {"I22", "tiny | dp2 optimizer=sgd | 2 ranks", "tiny | dp2 | 2 ranks"},
      {"I23", "tiny | dp2 | 2 ranks", "tiny | dp1 | 1 rank"},
      {"I27", "tiny batch=2 valid_labels=0,7 unused=1 frozen=*.bias | dp1 microbatches=2 | 1 rank",
       "tiny batch=2 valid_labels=7,0 unused=1 frozen=*.bias | dp1 microbatches=2 | 1 rank"},
      {"I32", "tiny | tp4 | 4 ranks", "tiny | tp3 | 3 ranks"},
      {"I33", "tiny batch=4 samples=7 | dp2 | 2 ranks", "tiny batch=4 samples=7 | pp2 | 2 ranks"},
  };
  for (const auto& [id, has, lacks] : all) {
    EXPECT_TRUE(holds(id, has)) << id << ": " << has;
    EXPECT_FALSE(holds(id, lacks)) << id << ": " << lacks;
  }
  EXPECT_TRUE(holds("I21", "w03 | dp2 | 2 ranks", {Shown::clip_bound, Shown::clip_idle}));
  EXPECT_FALSE(holds("I21", "w03 | dp2 | 2 ranks", {Shown::clip_bound}));
}

TEST(Properties, EveryOneThatCanBeHasACase) {
  std::vector<Suite> suites;
  for (const auto& name : suite_names()) suites.push_back(load_suite(name));
  for (const auto& one : coverage(suites)) EXPECT_FALSE(one.is_missing()) << one.property->id;
  const auto nothing = coverage({});
  EXPECT_GT(std::ranges::count_if(nothing, &Coverage::is_missing), 15);
}

TEST(Properties, WhatAnEntryNeedsIsNotThereYet) {
  for (const auto& entry : load_suite("conformance").entries) {
    for (const auto& technique : entry.needs) EXPECT_FALSE(is_built(technique)) << entry.name << ": " << technique;
  }
}

}  // namespace
}  // namespace shardproof::harness
