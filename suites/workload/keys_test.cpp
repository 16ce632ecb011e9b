// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/keys.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::workload {
namespace {

/// One setting per key that makes a legal workload different from tiny, and the value as print() writes it.
const std::map<std::string, std::pair<std::string, std::string>> changes{
    {"name", {"other \"name\"", "\"other \\\"name\\\"\""}},
    {"why", {"", "\"\""}},
    {"layers", {"4", "4"}},
    {"hidden", {"30", "30"}},
    {"heads", {"12", "12"}},
    {"kv_heads", {"1", "1"}},
    {"mlp_hidden", {"0", "96"}},
    {"vocab", {"2147483647", "2147483647"}},
    {"sequence", {"1", "1"}},
    {"activation", {"relu", "\"relu\""}},
    {"tied_head", {"false", "false"}},
    {"shared_block", {"0,1", "[0, 1]"}},
    {"layer_norm_epsilon", {"1e-6", "1e-06"}},
    {"dropout", {"0.1", "0.1"}},
    {"label_smoothing", {"0.30000000000000004", "0.30000000000000004"}},
    {"window", {"3", "3"}},
    {"unused", {"[0,1,7]", "[0, 1, 7]"}},
    {"frozen", {"*.bias,token*", "[\"*.bias\", \"token*\"]"}},
    {"initialization", {"gpt2", "\"gpt2\""}},
    {"init_std", {"0", "0"}},
    {"corpus", {SHARDPROOF_CORPUS, "\"" SHARDPROOF_CORPUS "\""}},
    {"documents", {"[4, 5]", "[4, 5]"}},
    {"valid_labels", {"0", "[0]"}},
    {"prompt", {"9", "9"}},
    {"batch", {"1", "1"}},
    {"samples", {"9007199254740992", "9007199254740992"}},
    {"seed", {"18446744073709551615", "18446744073709551615"}},
    {"steps", {"1", "1"}},
    {"optimizer", {"momentum", "\"momentum\""}},
    {"learning_rate", {"0", "0"}},
    {"learning_rate_schedule", {"cosine", "\"cosine\""}},
    {"warmup_steps", {"7", "7"}},
    {"minimum_learning_rate", {"1e-9", "1e-09"}},
    {"momentum", {"0", "0"}},
    {"beta1", {"0.5", "0.5"}},
    {"beta2", {"0.999", "0.999"}},
    {"epsilon", {"1e-30", "1e-30"}},
    {"weight_decay", {"0.1", "0.1"}},
    {"decay_group", {"none", "\"none\""}},
    {"clip", {"1", "1"}},
    {"loss_scale", {"1", "1"}},
};

/// What else a change needs to be legal.
std::vector<std::string> settings(const std::string& key) {
  std::vector<std::string> list{key + "=" + changes.at(key).first};
  if (key == "weight_decay") list.push_back("optimizer=adamw");
  if (key == "minimum_learning_rate") list.push_back("learning_rate_schedule=linear");
  if (key == "corpus") list.push_back("vocab=256");
  return list;
}

std::string changed_value(const Workload& workload, const std::string& key) {
  return value_text(workload, *find_key(key));
}

TEST(Keys, EveryKeyRoundTrips) {
  const Workload tiny = load("tiny");
  ASSERT_EQ(changes.size(), keys().size());
  for (const KeyInfo& key : keys()) {
    ASSERT_TRUE(changes.contains(key.name)) << key.name;
    const Workload changed = load("tiny", settings(key.name));
    EXPECT_EQ(changed_value(changed, key.name), changes.at(key.name).second);
    EXPECT_NE(changed_value(tiny, key.name), changed_value(changed, key.name)) << key.name;
    const Workload again = parse(print(changed), "printed");
    EXPECT_EQ(print(again), print(changed)) << key.name;
  }
}

TEST(Keys, SettingsChangeNothingElse) {
  for (const auto& [key, change] : changes) {
    const Workload tiny = load("tiny"), changed = load("tiny", settings(key));
    std::set<std::string> different;
    for (const Key& other : key_table()) {
      if (value_text(tiny, other) != value_text(changed, other)) different.insert(std::string(other.name));
    }
    std::set<std::string> expected;
    for (const std::string& setting : settings(key)) expected.insert(setting.substr(0, setting.find('=')));
    EXPECT_EQ(different, expected);
  }
}

TEST(Keys, PrintHoldsEveryMemberInOrder) {
  const std::string text = print(load("tiny"));
  std::size_t last = 0;
  for (const KeyInfo& key : keys()) {
    const std::size_t place = text.find("\n  \"" + key.name + "\": ");
    ASSERT_NE(place, text.npos) << key.name;
    EXPECT_GE(place, last);
    last = place;
    EXPECT_FALSE(key.type.empty());
    EXPECT_FALSE(key.standard.empty());
    EXPECT_FALSE(key.meaning.empty());
  }
}

TEST(Keys, TableHoldsEveryMemberInTheStructsOrder) {
  // Where each member lies when nothing stands between it and the one before.
  const Workload w;
  const auto aligned = [](std::size_t offset, std::size_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
  };
  std::size_t end = 0;
  for (const Key& key : key_table()) {
    std::visit(
        [&](auto member) {
          using T = std::remove_cvref_t<decltype(w.*member)>;
          const auto offset =
              static_cast<std::size_t>(reinterpret_cast<const char*>(&(w.*member)) - reinterpret_cast<const char*>(&w));
          EXPECT_EQ(offset, aligned(end, alignof(T))) << "before " << key.name << " a member has no key";
          end = offset + sizeof(T);
        },
        key.member);
  }
  // What a strategy's schedule says stands last, and has none.
  EXPECT_EQ(offsetof(Workload, stale), aligned(end, alignof(StaleProgram))) << "the last member has no key";
  EXPECT_EQ(sizeof(Workload), offsetof(Workload, stale) + sizeof(StaleProgram));
}

TEST(Keys, HashFollowsEveryKeyButNameAndWhy) {
  const std::string tiny = hash(load("tiny"));
  EXPECT_EQ(tiny.size(), 64u);
  std::set<std::string> hashes{tiny};
  for (const KeyInfo& key : keys()) {
    const std::string changed = hash(load("tiny", settings(key.name)));
    if (key.name == "name" || key.name == "why") {
      EXPECT_EQ(changed, tiny) << key.name;
    } else {
      EXPECT_TRUE(hashes.insert(changed).second) << key.name;
    }
  }
}

TEST(Keys, StandardsAndTypesAreListed) {
  const auto infos = keys();
  const auto of = [&](const char* name) {
    return *std::find_if(infos.begin(), infos.end(), [&](const KeyInfo& key) { return key.name == name; });
  };
  EXPECT_EQ(of("layers").type, "integer");
  EXPECT_EQ(of("layers").standard, "2");
  EXPECT_EQ(of("seed").standard, "1");
  EXPECT_EQ(of("learning_rate").type, "number");
  EXPECT_EQ(of("learning_rate").standard, "0.001");
  EXPECT_EQ(of("tied_head").type, "true | false");
  EXPECT_EQ(of("activation").type, "gelu | relu");
  EXPECT_EQ(of("activation").standard, "\"gelu\"");
  EXPECT_EQ(of("unused").type, "list of integers");
  EXPECT_EQ(of("frozen").type, "list of texts");
  EXPECT_EQ(of("corpus").type, "text");
}

TEST(Keys, NamesOfEnumsFollowTheirOrder) {
  EXPECT_EQ(names_of(Activation{})[static_cast<std::size_t>(Activation::relu)], "relu");
  EXPECT_EQ(names_of(Initialization{})[static_cast<std::size_t>(Initialization::hostile)], "hostile");
  EXPECT_EQ(names_of(OptimizerKind{})[static_cast<std::size_t>(OptimizerKind::sgd)], "sgd");
  EXPECT_EQ(names_of(OptimizerKind{})[static_cast<std::size_t>(OptimizerKind::momentum)], "momentum");
  EXPECT_EQ(names_of(OptimizerKind{})[static_cast<std::size_t>(OptimizerKind::adam)], "adam");
  EXPECT_EQ(names_of(OptimizerKind{})[static_cast<std::size_t>(OptimizerKind::adamw)], "adamw");
  EXPECT_EQ(names_of(DecayGroup{})[static_cast<std::size_t>(DecayGroup::all)], "all");
  EXPECT_EQ(names_of(DecayGroup{})[static_cast<std::size_t>(DecayGroup::none)], "none");
  EXPECT_EQ(names_of(RateSchedule{})[static_cast<std::size_t>(RateSchedule::linear)], "linear");
  EXPECT_EQ(names_of(RateSchedule{})[static_cast<std::size_t>(RateSchedule::cosine)], "cosine");
}

}  // namespace
}  // namespace shardproof::workload
