// SPDX-License-Identifier: Apache-2.0
#include "harness/suite.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {
namespace {

std::string suite_with(const std::string& entry) { return R"({"why": "w", "cases": [)" + entry + "]}"; }
std::string entry_with(const std::string& more) { return R"({"name": "n", "why": "w", )" + more + "}"; }

std::vector<std::string> printed(const Suite& suite) {
  std::vector<std::string> cases;
  for (const auto& entry : suite.entries) {
    for (const auto& value : entry.cases) cases.push_back(print(value));
  }
  return cases;
}

TEST(Suite, ExpandsEveryCombination) {
  const auto suite = parse_suite(suite_with(entry_with(R"("workload": "tiny", "set": {"tied_head": false},
      "factors": {"dropout": [0, 0.25], "documents": [[1, 2], []]}, "strategies": ["dp1", "dp1 microbatches=2"],
      "tracks": ["exact", "f64"], "steps": 4, "shows": ["clip_bound", "any"], "expect": {"pass": 15, "unsupported": 1})")),
                                 "s");
  ASSERT_EQ(suite.entries.size(), 1u);
  const auto cases = printed(suite);
  EXPECT_EQ(std::set<std::string>(cases.begin(), cases.end()).size(), 16u);
  EXPECT_EQ(cases.front(),
            "tiny tied_head=false dropout=0 documents=1,2 steps=4 | dp1 | 1 rank | exact | cpu | threads");
  EXPECT_EQ(
      cases.back(),
      "tiny tied_head=false dropout=0.25 documents=[] steps=4 | dp1 microbatches=2 | 1 rank | f64 | cpu | threads");
  EXPECT_EQ(suite.entries[0].shows, (std::vector{Shown::clip_bound, Shown::any}));
  EXPECT_EQ(suite.entries[0].pass, 15);
  EXPECT_EQ(suite.entries[0].unsupported, 1);
}

TEST(Suite, DefaultsAreOneRankAndAllTracks) {
  const auto suite = parse_suite(suite_with(entry_with(R"("workload": "tiny", "expect": {"pass": 3})")), "s");
  EXPECT_EQ(printed(suite), (std::vector<std::string>{"tiny | dp1 | 1 rank | exact | cpu | threads",
                                                      "tiny | dp1 | 1 rank | f64 | cpu | threads",
                                                      "tiny | dp1 | 1 rank | native | cpu | threads"}));
  EXPECT_EQ(suite.entries[0].shows, std::vector{Shown::gradient});
}

TEST(Suite, RandomEntriesTakeAnotherSeed) {
  const auto text =
      suite_with(entry_with(R"("random": {"count": 2, "seed": 7}, "tracks": ["exact"], "expect": {"pass": 2})"));
  EXPECT_EQ(parse_suite(text, "s").entries[0].cases[1].workload, "random:7:1");
  EXPECT_EQ(parse_suite(text, "s", 9).entries[0].cases[1].workload, "random:9:1");
}

struct Refusal {
  std::string text, finding;
};

std::vector<Refusal> refusals() {
  const auto entry = [](const std::string& more) { return suite_with(entry_with(more)); };
  const std::string good = R"("workload": "tiny", "tracks": ["exact"], "expect": {"pass": 1})";
  return {
      {"[]", "object"},
      {R"({"why": "w", "cases": []})", "\"cases\" must be a list"},
      {R"({"cases": [)" + entry_with(good) + "]}", "\"why\" is missing"},
      {R"({"why": "w", "Cases": 1, "cases": [)" + entry_with(good) + "]}", "did you mean \"cases\""},
      {suite_with("3"), "entry 1: not an object"},
      {entry(good + R"(, "step": 3)"), "did you mean \"steps\""},
      {entry(good + R"(, "steps": 0)"), "\"steps\" must be"},
      {entry(good + R"(, "steps": 2.5)"), "\"steps\" must be"},
      {entry(good + R"(, "shows": ["gradients"])"), "did you mean \"gradient\""},
      {entry(good + R"(, "shows": [])"), "\"shows\" must be a list"},
      {entry(good + R"(, "ranks": [0])"), "\"ranks\" must be"},
      {entry(good + R"(, "strategies": [1])"), "\"strategies\" must hold texts"},
      {entry(good + R"(, "set": {"a": {}})"), "no value of a setting"},
      {entry(good + R"(, "set": {"a": "b c"})"), "no value of a setting"},
      {entry(good + R"(, "set": {"a": "b|c"})"), "no value of a setting"},
      {entry(good + R"(, "set": {"a": null})"), "no value of a setting"},
      {entry(good + R"(, "set": [])"), "\"set\" must be an object"},
      {entry(good + R"(, "factors": {"a": 1})"), "factor \"a\" must be a list"},
      {entry(good + R"(, "factors": {"a": []})"), "factor \"a\" must be a list"},
      {entry(R"("workload": "tiny", "tracks": ["f32"], "expect": {"pass": 1})"), "unknown track \"f32\""},
      {entry(R"("workload": "tiny", "tracks": ["exact"], "expect": {"pass": 2})"), "makes 1 cases"},
      {entry(R"("workload": "tiny", "tracks": ["exact"], "expect": {"passed": 1})"), "did you mean \"pass\""},
      {entry(R"("workload": "tiny", "tracks": ["exact"], "expect": {"pass": -1})"), "\"pass\" must be"},
      {entry(R"("workload": "tiny", "tracks": ["exact"])"), "\"expect\" is missing"},
      {entry(R"("tracks": ["exact"], "expect": {"pass": 1})"), "\"workload\" is missing"},
      {entry(R"("random": {"count": 0, "seed": 1}, "expect": {"pass": 3})"), "\"count\" must be"},
      {entry(R"("random": {"count": 1}, "expect": {"pass": 3})"), "\"seed\" must be"},
      {entry(R"("random": {"count": 1, "seed": 1, "from": 2}, "expect": {"pass": 3})"), "unknown key \"from\""},
      {entry(R"("random": {"count": 1, "seed": 1}, "workload": "tiny", "expect": {"pass": 3})"), "exclude each other"},
      {entry(good + R"(, "steps": 3, "steps": 4)"), "doubled"},
      {suite_with(entry_with(good) + ", " + entry_with(good)), "the name n is taken"},
      {suite_with(entry_with(good) + R"(, {"name": "m", "why": "w", )" + good + "}"), "is a case of n already"},
      {entry(R"("set": {"a": 1}, "factors": {"a": [1]}, )" + good), "is set and is a factor too"},
  };
}

TEST(Suite, WhatIsWrongIsSaid) {
  for (const auto& [text, finding] : refusals()) {
    try {
      parse_suite(text, "s");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(finding), std::string::npos) << text << "\n" << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("s")) << error.what();
    }
  }
}

TEST(Suite, AllFindingsComeAtOnce) {
  try {
    parse_suite(suite_with(entry_with(R"("workload": 3, "steps": 0, "expected": {})")), "s");
    FAIL();
  } catch (const BadInput& error) {
    const std::string text = error.what();
    EXPECT_GE(std::ranges::count(text, '\n'), 3) << text;
  }
}

/// What a validator that this project did not write says of each text: '1' valid, '0' not.
std::string schema_says(const std::vector<std::string>& texts) {
  const std::string path = testing::TempDir() + "suite_schema_test.json";
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "[" : ",\n") + text;
  write_file(path, all + "]");
  const std::string program =
      "import json, sys\n"
      "from jsonschema import Draft202012Validator as V\n"
      "schema = json.load(open(sys.argv[1]))\n"
      "V.check_schema(schema)\n"
      "for text in json.load(open(sys.argv[2])): print(int(V(schema).is_valid(text)), end=str())\n";
  const std::string command =
      "/usr/bin/python3 -c '" + program + "' " + SHARDPROOF_SOURCE "/suites/suite.schema.json " + path;
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  return pclose(pipe) == 0 ? said : "";
}

TEST(Suite, TheSchemaAgrees) {
  std::vector<std::string> texts = {read_file(SHARDPROOF_SOURCE "/suites/cases/one_device.json")};
  for (const auto& [text, finding] : refusals()) {
    // Counts, doubled names and what a name means are beyond a schema.
    const bool beyond = finding.starts_with("makes") || finding == "doubled" || finding.ends_with("is taken") ||
                        finding.ends_with("already") || finding.ends_with("a factor too");
    if (!beyond) texts.push_back(text);
  }
  const std::string said = schema_says(texts);
  ASSERT_EQ(said.size(), texts.size());
  EXPECT_EQ(said[0], '1');
  for (std::size_t k = 1; k < texts.size(); ++k) EXPECT_EQ(said[k], '0') << texts[k];
}

TEST(Suite, TheCommittedOnesLoadAndTheirWorkloadsAreLegal) {
  ASSERT_FALSE(suite_names().empty());
  for (const auto& name : suite_names()) {
    const Suite suite = load_suite(name);  // holds it against its manifest
    for (const auto& entry : suite.entries) {
      for (const auto& value : entry.cases)
        EXPECT_NO_THROW(workload::load(value.workload, value.settings)) << print(value);
    }
  }
}

TEST(Suite, OneDeviceCoversEveryOption) {
  const Suite suite = load_suite("one_device");
  std::set<std::string> set, tracks;
  std::int64_t random = 0;
  for (const auto& entry : suite.entries) {
    for (const auto& value : entry.cases) {
      for (const auto& setting : value.settings) set.insert(setting.substr(0, setting.find('=')));
      random += value.workload.starts_with("random:") && value.track == Track::exact ? 1 : 0;
    }
  }
  EXPECT_GE(random, 200);
  // Set by random workloads and the shapes of W01-W15 only, or without influence on what is computed.
  const std::set<std::string> elsewhere = {"name", "why", "init_std", "corpus", "seed", "learning_rate", "beta2"};
  for (const auto& key : workload::keys()) {
    EXPECT_TRUE(elsewhere.contains(key.name) || set.contains(key.name)) << key.name;
  }
}

TEST(Suite, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    load_suite("onedevice");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"one_device\""), std::string::npos) << error.what();
  }
  EXPECT_THROW(load_suite("no/such.json"), BadInput);
}

}  // namespace
}  // namespace shardproof::harness
