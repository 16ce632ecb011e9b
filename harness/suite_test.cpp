// SPDX-License-Identifier: Apache-2.0
#include "harness/suite.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/testing/folder.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {
namespace {

std::string suite_with(const std::string& entry) { return R"({"why": "w", "cases": [)" + entry + "]}"; }
std::string entry_with(const std::string& more) { return R"({"name": "n", "why": "w", )" + more + "}"; }

std::string entry(const std::string& more) { return suite_with(entry_with(more)); }

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

TEST(Suite, RanksAreWhatTheStrategyNeeds) {
  const auto suite = parse_suite(
      entry(R"("workload": "tiny", "strategies": ["dp2 pp2", "tp3"], "tracks": ["exact"], "expect": {"pass": 2})"),
      "s");
  EXPECT_EQ(printed(suite), (std::vector<std::string>{"tiny | dp2 pp2 | 4 ranks | exact | cpu | threads",
                                                      "tiny | tp3 | 3 ranks | exact | cpu | threads"}));
}

/// dp3 tp3 needs 9 ranks, and a list of layers needs its stages.
TEST(Suite, StrategyFactorsMakeTheLegalCombinations) {
  const auto suite = parse_suite(
      entry(
          R"("workload": "tiny", "steps": 2, "set": {"layers": 3}, "factors": {"dropout": [0, 0.5]}, "tracks": ["exact"],
      "strategy_factors": {"dp": [1, 3], "tp": ["", 3], "pp": [1, 2], "layers": ["balanced", [3, 0]]}, "expect": {"pass": 18})"),
      "s");
  const auto cases = printed(suite);
  EXPECT_EQ(cases.front(), "tiny layers=3 dropout=0 steps=2 | dp1 | 1 rank | exact | cpu | threads");
  EXPECT_EQ(cases[2], "tiny layers=3 dropout=0 steps=2 | pp2 layers=3,0 | 2 ranks | exact | cpu | threads");
  EXPECT_EQ(cases.back(), "tiny layers=3 dropout=0.5 steps=2 | dp3 pp2 layers=3,0 | 6 ranks | exact | cpu | threads");
  EXPECT_FALSE(suite.entries[0].pairs);
}

TEST(Suite, PairsAreFewerAndCountedAndTheSameEveryTime) {
  const std::string text = R"("workload": "tiny", "tracks": ["exact"], "cover": "pairs", "most_ranks": 6,
      "factors": {"dropout": [0, 0.5], "batch": [1, 2, 3], "clip": [0, 1]},
      "strategy_factors": {"dp": [1, 2, 3], "tp": [1, 2, 3], "microbatches": [1, 2]}, "needs": ["zero"], "expect": {"pass": )";
  const auto read = [&](int pass) { return parse_suite(entry(text + std::to_string(pass) + "}"), "s"); };
  int pass = 9;
  for (; pass < 20; ++pass) {  // what is not expected is refused
    try {
      read(pass);
      break;
    } catch (const BadInput&) {
    }
  }
  ASSERT_LT(pass, 20);
  const auto suite = read(pass);
  const Entry& one = suite.entries[0];
  EXPECT_TRUE(one.pairs);
  EXPECT_EQ(one.needs, std::vector<std::string>{"zero"});
  EXPECT_EQ(printed(suite), printed(read(pass)));
  // The workload with 15 levels, and those in pairs but dp3 tp3.
  EXPECT_EQ(one.legal, 15 + (15 * 15 - 4 - 9 - 4 - 9 - 9 - 4) / 2 - 1);
  EXPECT_EQ(one.covered, one.legal);
  for (const auto& value : one.cases) EXPECT_LE(value.ranks, 6);
}

struct Refusal {
  std::string text, finding;
};

std::vector<Refusal> refusals() {
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
      {entry(R"("workload": "tiny", "tracks": ["exact"], "expect": {"pass": 2})"), "makes 1 case"},
      {entry(R"("workload": "tiny", "tracks": ["exact"], "expect": {"passed": 1})"), "did you mean \"pass\""},
      {entry(R"("workload": "tiny", "tracks": ["exact"], "expect": {"pass": -1})"), "\"pass\" must be"},
      {entry(R"("workload": "tiny", "tracks": ["exact"])"), "\"expect\" is missing: it makes 1 case, as {\"pass\": 1}"},
      {entry(R"("tracks": ["exact"], "expect": {"pass": 1})"), "\"workload\" is missing"},
      {entry(R"("random": {"count": 0, "seed": 1}, "expect": {"pass": 3})"), "\"count\" must be"},
      {entry(R"("random": {"count": 1}, "expect": {"pass": 3})"), "\"seed\" must be"},
      {entry(R"("random": {"count": 1, "seed": 1, "from": 2}, "expect": {"pass": 3})"), "unknown key \"from\""},
      {entry(R"("random": {"count": 1, "seed": 1}, "workload": "tiny", "expect": {"pass": 3})"), "exclude each other"},
      {entry(good + R"(, "steps": 3, "steps": 4)"), "doubled"},
      {suite_with(entry_with(good) + ", " + entry_with(good)), "the name n is taken"},
      {suite_with(entry_with(good) + R"(, {"name": "m", "why": "w", )" + good + "}"), "is a case of n already"},
      {entry(R"("workload": "tiny", "expect": {"pass": 18446744073709551615, "unsupported": 2})"), "from 0 to 1000000"},
      {suite_with(R"({"name": "a\u001b[31m\nfail: b", "why": "w", "workload": "tiny", "expect": {"pass": 3}})"),
       "no control characters"},
      {entry(R"("set": {"a": 1}, "factors": {"a": [1]}, )" + good), "is set and is a factor too"},
      {entry(good + R"(, "strategy_factors": [])"), "\"strategy_factors\" must be an object"},
      {entry(good + R"(, "strategy_factors": {"dp": 2})"), "factor \"dp\" must be a list"},
      {entry(good + R"(, "strategy_factors": {"dq": [2]})"), "unknown strategy key \"dq\""},
      {entry(good + R"(, "strategy_factors": {"dp": [0]})"), "dp must be a whole number"},
      {entry(good + R"(, "strategy_factors": {"schedule": ["gpip"]})"), "did you mean \"gpipe\""},
      {entry(good + R"(, "strategy_factors": {"dp": [1]}, "strategies": ["dp1"])"), "exclude each other"},
      {entry(good + R"(, "strategy_factors": {"dp": [1]}, "ranks": [1])"), "exclude each other"},
      {entry(good + R"(, "strategy_factors": {"dp": [1, 2, 3], "pp": [2]}, "most_ranks": 4)"), "makes 2 cases"},
      {entry(R"("workload": "tinny", "strategy_factors": {"dp": [1]}, "expect": {"pass": 3})"), "unknown workload"},
      {entry(good + R"(, "most_ranks": 2)"), "\"most_ranks\" belongs"},
      {entry(good + R"(, "cover": "pairs")"), "nothing to cover"},
      {entry(good + R"(, "factors": {"a": [1]}, "cover": "triples")"), "must be all or pairs"},
      {entry(good + R"(, "needs": "zero")"), "\"needs\" must be a list"},
      {entry(good + R"(, "strategies": ["dpp2"])"), "unknown strategy key \"dpp\""},
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

std::string factors(int of, int values) {
  std::string text = "\"factors\": {";
  for (int k = 0; k < of; ++k) {
    text += fmt::format("{}\"f{}\": [0", k == 0 ? "" : ", ", k);
    for (int v = 1; v < values; ++v) text += fmt::format(", {}", v);
    text += "]";
  }
  return text + "}";
}

TEST(Suite, AnEntrysPlaceIsSaid) {
  const std::string text =
      "{\"why\": \"[{\\\"cases\\\": [\",\n \"cases\": [{\"name\": \"a, [\"},\n    3 ,\n\t[1, {\"b\": [2, 3]}], {}\n]}";
  try {
    parse_suite(text, "s");
    FAIL();
  } catch (const BadInput& error) {
    const std::string all = error.what();
    for (const char* place : {"s: line 2, column 12: entry 1 (a, [): ", "s: line 3, column 5: entry 2: not an object",
                              "s: line 4, column 2: entry 3: not an object", "s: line 4, column 22: entry 4: "})
      EXPECT_NE(all.find(place), std::string::npos) << place << "\n" << all;
  }
}

TEST(Suite, AWorkloadsFileIsFoundFromTheSuitesFolder) {
  const shardproof::testing::Folder folder;
  std::filesystem::create_directory(folder / "below");
  write_file(folder / "my.json", R"({"layers": 2})");
  write_file(
      folder / "below" / "s.json",
      suite_with(entry_with(
          R"("workload": "../my.json", "strategy_factors": {"dp": [1, 2]}, "tracks": ["exact"], "expect": {"pass": 2})")));
  const Suite suite = load_suite((folder / "below" / "s.json").string());
  EXPECT_EQ(suite.entries[0].cases[1].workload, std::filesystem::absolute(folder / "my.json").string());
  EXPECT_NO_THROW(workload::load(suite.entries[0].cases[1].workload));
}

TEST(Suite, TooManyCombinationsAreRefusedBeforeTheyAreMade) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_suite(text, "s");
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(entry(R"("workload": "tiny", "expect": {"pass": 1}, )" + factors(12, 10))),
            "s: line 1, column 24: entry 1 (n): it makes 3e+12 cases; at most 1000000 are legal");
  EXPECT_EQ(refusal(entry(R"("workload": "tiny", "expect": {"pass": 1}, )" + factors(5, 10) +
                          R"(, "ranks": [1, 2, 3, 4, 5])")),
            "s: line 1, column 24: entry 1 (n): it makes 1.5e+06 cases; at most 1000000 are legal");
  EXPECT_EQ(refusal(entry(R"("workload": "tiny", "cover": "pairs", "expect": {"pass": 1}, )" + factors(3, 700))),
            "s: line 1, column 24: entry 1 (n): its factors have 1.47e+06 pairs of levels; at most 1000000 are legal");
}

TEST(Suite, ALevelOfAStrategyKeyIsOneWord) {
  try {
    parse_suite(entry(R"("workload": "tiny", "strategy_factors": {"dp": ["2 pp2"]}, "expect": {"pass": 1})"), "s");
    FAIL() << "accepted";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "s: line 1, column 24: entry 1 (n): factor \"dp\": \"2 pp2\" is no value of a strategy's key (no "
                 "space, no '|', no nesting)");
  }
}

TEST(Suite, AnEntryWithAFindingIsNotCounted) {
  try {
    parse_suite(entry(R"("workload": "tiny", "ranks": [0, -1, 1], "expect": {"pass": 3})"), "s");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(std::ranges::count(std::string(error.what()), '\n'), 1) << error.what();
  }
}

TEST(Suite, DeepNestingIsRefusedNotFollowed) {
  for (const char* key : {"strategies", "set", "ranks", "no_key"}) {
    const std::string text = entry(fmt::format("\"workload\": \"tiny\", \"{}\": {}", key, std::string(200'000, '[')));
    EXPECT_THROW(parse_suite(text, "s"), BadInput) << key;
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
  const shardproof::testing::Folder folder;
  const std::string path = (folder / "texts.json").string();
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
      SHARDPROOF_PYTHON " -c '" + program + "' " + SHARDPROOF_SOURCE "/suites/suite.schema.json " + path;
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  return pclose(pipe) == 0 ? said : "";
}

TEST(Suite, TheSchemaAgrees) {
  std::vector<std::string> texts;
  for (const auto& name : suite_names())
    texts.push_back(read_file(SHARDPROOF_SOURCE "/suites/cases/" + name + ".json"));
  for (const auto& [text, finding] : refusals()) {
    // Counts, doubled names and what a name means are beyond a schema.
    const bool beyond = finding.starts_with("makes") || finding == "doubled" || finding.ends_with("is taken") ||
                        finding.ends_with("already") || finding.ends_with("a factor too") ||
                        finding.starts_with("unknown strategy") || finding.starts_with("unknown workload") ||
                        finding.starts_with("dp must") || finding.ends_with("gpipe\"");
    if (!beyond) texts.push_back(text);
  }
  const std::string said = schema_says(texts);
  ASSERT_EQ(said.size(), texts.size());
  const auto committed = suite_names().size();
  for (std::size_t k = 0; k < texts.size(); ++k) EXPECT_EQ(said[k], k < committed ? '1' : '0') << texts[k];
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
  std::int64_t random = 0;  // exact cases that must show a gradient
  for (const auto& entry : suite.entries) {
    EXPECT_EQ(std::ranges::count(entry.shows, Shown::any), 0) << entry.name << ": a step skipped would be enough";
    const bool gradient = std::ranges::count(entry.shows, Shown::gradient) > 0;
    for (const auto& value : entry.cases) {
      for (const auto& setting : value.settings) set.insert(setting.substr(0, setting.find('=')));
      random += gradient && value.workload.starts_with("random:") && value.track == Track::exact ? 1 : 0;
    }
  }
  EXPECT_GE(random, 200);
  // Set by random workloads and the shapes of W01-W15 only, of a file, or without influence on what is computed.
  const std::set<std::string> elsewhere = {"name", "why", "corpus", "seed", "learning_rate"};
  for (const auto& key : workload::keys()) {
    EXPECT_TRUE(elsewhere.contains(key.name) || set.contains(key.name)) << key.name;
  }
}

TEST(Suite, ConformanceHasEveryRankCountAndEveryPair) {
  const Suite suite = load_suite("conformance");
  std::set<std::int64_t> ranks;
  std::int64_t exact = 0, bounded = 0;
  for (const auto& entry : suite.entries) {
    EXPECT_EQ(entry.covered, entry.legal) << entry.name;
    EXPECT_EQ(entry.unsupported, 0) << entry.name;
    for (const auto& value : entry.cases) {
      ranks.insert(value.ranks);
      const bool in_pairs = entry.pairs && value.track == Track::exact;
      exact += in_pairs ? 1 : 0;
      bounded += value.track == Track::native ? 1 : 0;
    }
  }
  EXPECT_EQ(ranks, (std::set<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_GE(exact, 200);
  EXPECT_GE(4 * bounded, exact);
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
