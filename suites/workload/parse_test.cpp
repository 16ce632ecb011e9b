// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/testing/folder.hpp"
#include "suites/workload/built_in.hpp"
#include "suites/workload/random_workload.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::workload {
namespace {

template <class F>
std::string refused(const F& f) {
  try {
    f();
  } catch (const BadInput& e) {
    return e.what();
  }
  return "accepted";
}
std::string refused_text(const std::string& json) {
  return refused([&] { parse(json, "w.json"); });
}
std::string refused_setting(const std::string& setting) {
  return refused([&] { load("tiny", std::vector{setting}); });
}

TEST(Parse, EmptyObjectIsTheStandardWorkload) {
  const Workload w = parse("{}", "w.json");
  EXPECT_EQ(w.name, "custom");
  EXPECT_EQ(w.kv_heads, w.heads);
  EXPECT_EQ(w.mlp_hidden, 4 * w.hidden);
  EXPECT_EQ(w.kv_hidden(), w.hidden);
  EXPECT_EQ(w.learning_rate, 1e-3);
}

TEST(Parse, DeepNestingIsRefusedNotFollowed) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(refused_text("{\"layers\": " + deep), "w.json: nested more than 64 deep");
  EXPECT_EQ(refused_text("{\"no_key\": " + deep), "w.json: nested more than 64 deep");
  const std::string some(60, '['), end(60, ']');
  EXPECT_EQ(refused_text("{\"frozen\": " + some + end + "}"),
            "w.json: frozen is a nested list; legal: a list of texts in quotes");
  EXPECT_TRUE(refused_setting("valid_labels=" + deep).starts_with("setting: valid_labels is "));
  EXPECT_TRUE(refused_setting("frozen=" + deep).starts_with("setting: frozen is "));
}

TEST(Parse, NumbersStayInTheRangeOfFloat) {
  for (const char* setting : {"epsilon=1e-46", "layer_norm_epsilon=1e-300", "learning_rate=1e300", "clip=1e39",
                              "dropout=0.9999998", "minimum_learning_rate=1e300"})
    EXPECT_NE(refused_setting(setting), "accepted") << setting;
  for (const char* setting : {"epsilon=1e-30", "learning_rate=1e30", "dropout=0.999"})
    EXPECT_EQ(refused_setting(setting), "accepted") << setting;
}

TEST(Parse, ReadsEveryType) {
  const Workload w = parse(R"({"hidden": 30, "heads": 6, "kv_heads": 2, "tied_head": false, "unused": [0, 3], "clip": 1,
    "frozen": ["*.bias"], "seed": 18446744073709551615, "optimizer": "adamw", "dropout": 1e-1, "corpus": "a/b.txt"})",
                           "w.json");
  EXPECT_EQ(w.hidden, 30);
  EXPECT_EQ(w.kv_hidden(), 10);
  EXPECT_EQ(w.mlp_hidden, 120);
  EXPECT_FALSE(w.tied_head);
  EXPECT_EQ(w.unused, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(w.frozen, std::vector<std::string>{"*.bias"});
  EXPECT_EQ(w.seed, 18446744073709551615u);
  EXPECT_EQ(w.optimizer, OptimizerKind::adamw);
  EXPECT_EQ(w.dropout, 0.1);
  EXPECT_EQ(w.clip, 1.0);
  EXPECT_EQ(w.corpus, "a/b.txt");
}

TEST(Parse, RefusesWhatIsNotJson) {
  EXPECT_TRUE(refused_text("").starts_with("w.json: not JSON: parse error at line 1, column 1"));
  EXPECT_TRUE(refused_text("{\n\"layers\": 2,\n}").starts_with("w.json: not JSON: parse error at line 3, column 1"));
  EXPECT_TRUE(refused_text("{\"clip\": NaN}").starts_with("w.json: not JSON: parse error"));
  EXPECT_TRUE(refused_text("{} {}").starts_with("w.json: not JSON: parse error"));
  EXPECT_EQ(refused_text("{\"clip\": 1e400}"), "w.json: not JSON: number overflow parsing '1e400'");
  EXPECT_EQ(refused_text("[1, 2]"), "w.json: a workload is one JSON object, not [1,2]");
  EXPECT_EQ(refused_text("[[1]]"), "w.json: a workload is one JSON object, not a nested list");
}

TEST(Parse, RefusesUnknownAndDoubledKeys) {
  EXPECT_EQ(refused_text(R"({"hiden": 24})"), "w.json: unknown key \"hiden\": did you mean \"hidden\"?");
  EXPECT_EQ(refused_text(R"({"Layers": 2})"), "w.json: unknown key \"Layers\": did you mean \"layers\"?");
  EXPECT_EQ(refused_text(R"({"layers": 2, "heads": 4, "layers": 2})"), "w.json: layers is given 2 times");
  EXPECT_EQ(refused_text(R"({"x": 1, "x": 2, "x": 3, "why": {"layers": 1, "layers": 2}})"),
            "w.json: x is given 3 times\nw.json: unknown key \"x\"\n"
            "w.json: why is an object; legal: a text in quotes");
}

TEST(Parse, RefusesWrongTypes) {
  EXPECT_EQ(refused_text(R"({"layers": "2"})"), "w.json: layers is \"2\"; legal: an integer from 1 to 10000");
  EXPECT_EQ(refused_text(R"({"layers": 1.5})"), "w.json: layers is 1.5; legal: an integer from 1 to 10000");
  EXPECT_EQ(refused_text(R"({"layers": null})"), "w.json: layers is null; legal: an integer from 1 to 10000");
  EXPECT_EQ(refused_text(R"({"vocab": 9223372036854775808})"),
            "w.json: vocab is 9223372036854775808; legal: an integer from 1 to 2147483647");
  EXPECT_EQ(refused_text(R"({"vocab": 2e1})"), "w.json: vocab is 20.0; legal: an integer from 1 to 2147483647");
  EXPECT_EQ(refused_text(R"({"seed": -1})"), "w.json: seed is -1; legal: an integer from 0 to 18446744073709551615");
  EXPECT_EQ(refused_text(R"({"clip": "1"})"), "w.json: clip is \"1\"; legal: a finite number from 0 to 1e+30");
  EXPECT_EQ(refused_text(R"({"clip": true})"), "w.json: clip is true; legal: a finite number from 0 to 1e+30");
  EXPECT_EQ(refused_text(R"({"tied_head": 1})"), "w.json: tied_head is 1; legal: true or false");
  EXPECT_EQ(refused_text(R"({"corpus": 3})"), "w.json: corpus is 3; legal: a text in quotes");
  EXPECT_EQ(refused_text(R"({"activation": "silu"})"), "w.json: activation is \"silu\"; legal: gelu or relu");
  EXPECT_EQ(refused_text(R"({"optimizer": "lamb"})"),
            "w.json: optimizer is \"lamb\"; legal: sgd, momentum, adam or adamw");
  EXPECT_EQ(refused_text(R"({"documents": 3})"),
            "w.json: documents is 3; legal: a list of integers from 1 to 2147483647");
  EXPECT_EQ(refused_text(R"({"unused": [1, 2.5]})"),
            "w.json: unused is [1,2.5]; legal: a list of integers from 0 to 2147483647");
  EXPECT_EQ(refused_text(R"({"unused": [[1]]})"),
            "w.json: unused is a nested list; legal: a list of integers from 0 to 2147483647");
  EXPECT_EQ(refused_text(R"({"frozen": "head.weight"})"),
            "w.json: frozen is \"head.weight\"; legal: a list of texts in quotes");
}

TEST(Parse, ReportsEverythingAtOnce) {
  const std::vector<std::string> settings{"learning_rate=nan", "step=3", "steps"};
  EXPECT_EQ(refused([&] { parse(R"({"layers": 0, "hidden": "a", "heads": 7, "dropuot": 0.1})", "w.json", settings); }),
            "w.json: hidden is \"a\"; legal: an integer from 1 to 16777216\n"
            "w.json: unknown key \"dropuot\": did you mean \"dropout\"?\n"
            "setting: learning_rate is \"nan\"; legal: a finite number from 0 to 1e+30\n"
            "setting: unknown key \"step\": did you mean \"steps\"?\n"
            "setting: \"steps\" is not key=value\n"
            "w.json: layers is 0; legal: an integer from 1 to 10000");
}

TEST(Parse, SettingsAreTyped) {
  EXPECT_EQ(refused_setting("learning_rate=nan"),
            "setting: learning_rate is \"nan\"; legal: a finite number from 0 to 1e+30");
  EXPECT_EQ(refused_setting("learning_rate=inf"),
            "setting: learning_rate is \"inf\"; legal: a finite number from 0 to 1e+30");
  EXPECT_EQ(refused_setting("learning_rate=1e999"),
            "setting: learning_rate is \"1e999\"; legal: a finite number from 0 to 1e+30");
  EXPECT_EQ(refused_setting("learning_rate="),
            "setting: learning_rate is \"\"; legal: a finite number from 0 to 1e+30");
  EXPECT_EQ(refused_setting("layers=2 3"), "setting: layers is \"2 3\"; legal: an integer from 1 to 10000");
  EXPECT_EQ(refused_setting("tied_head=yes"), "setting: tied_head is \"yes\"; legal: true or false");
  EXPECT_EQ(refused_setting("documents=3,x"),
            "setting: documents is \"3,x\"; legal: a list of integers from 1 to 2147483647");
  EXPECT_EQ(refused_setting("=3"), "setting: unknown key \"\"");
  EXPECT_EQ(refused([] {
              load("tiny", std::vector<std::string>{"steps=1", "steps=2"});
            }),
            "setting: steps is given twice");
}

TEST(Parse, SettingsNeedNoQuotesOrBrackets) {
  const Workload w = load("tiny", std::vector<std::string>{"corpus=my=file.txt", "documents=", "unused=3,0",
                                                           "frozen=[\"*.bias\"]", "optimizer=sgd", "kv_heads=0"});
  EXPECT_EQ(w.corpus, "my=file.txt");
  EXPECT_TRUE(w.documents.empty());
  EXPECT_EQ(w.unused, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(w.frozen, std::vector<std::string>{"*.bias"});
  EXPECT_EQ(w.optimizer, OptimizerKind::sgd);
  EXPECT_EQ(w.kv_heads, w.heads);
}

TEST(Load, BuiltInWorkloadsAreLegalAndNamedByTheirFiles) {
  const auto workloads = built_in();
  ASSERT_EQ(workloads.size(), built_in_files().size());
  ASSERT_GE(workloads.size(), 15u);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    EXPECT_EQ(workloads[i].name, built_in_files()[i].name);
    EXPECT_FALSE(workloads[i].why.empty()) << workloads[i].name;
    EXPECT_EQ(print(load(workloads[i].name)), print(workloads[i]));
  }
  EXPECT_EQ(load("laptop").hidden, 384);
  EXPECT_EQ(load("gpt2-124m").vocab, 50257);
}

TEST(Load, UnknownNames) {
  EXPECT_EQ(refused([] { load("latpop"); }),
            "unknown workload \"latpop\": did you mean \"laptop\"? (a file's path holds a / or ends in .json)");
  EXPECT_EQ(refused([] { load("random:1"); }), "workload \"random:1\"; legal: random:SEED:INDEX, two integers >= 0");
  EXPECT_EQ(refused([] { load("random:1:-2"); }),
            "workload \"random:1:-2\"; legal: random:SEED:INDEX, two integers >= 0");
  EXPECT_EQ(refused([] { load("random:1:2x"); }),
            "workload \"random:1:2x\"; legal: random:SEED:INDEX, two integers >= 0");
  EXPECT_TRUE(refused([] { load("no/such/file.json"); }).find("no/such/file.json") != std::string::npos);
}

TEST(Load, RandomWorkloadsByName) {
  const Workload w = load("random:3:14", std::vector<std::string>{"steps=5"});
  Workload expected = random_workload(3, 14);
  expected.steps = 5;
  EXPECT_EQ(print(w), print(expected));
}

TEST(Load, AFileIsNamedByItsStemUnlessItSays) {
  const shardproof::testing::Folder folder;
  write_file(folder / "mine.json", R"({"layers": 5})");
  write_file(folder / "named.json", R"({"layers": 6, "name": "yours"})");
  const Workload mine = load((folder / "mine.json").string()), named = load((folder / "named.json").string());
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.layers, 5);
  EXPECT_EQ(named.name, "yours");
}

}  // namespace
}  // namespace shardproof::workload
