// SPDX-License-Identifier: Apache-2.0
#include "harness/record.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/folder.hpp"

namespace shardproof::harness {
namespace {

Record record() {
  return {.case_text = "tiny | dp3 | 3 ranks | f64 | cpu | threads",
          .workload = "tiny \"quoted\" \xc3\xa9",
          .workload_hash = std::string(64, 'a'),
          .strategy = "microbatches=4",
          .ranks = 3,
          .track = Track::f64,
          .delays = 3,
          .injections = {"skip", "scale:rank=1"},
          .verdict = Verdict::pass,
          .judged = "full",
          .digest = std::string(64, '0'),
          .digest_steps = 3,
          .compared = std::numeric_limits<std::int64_t>::max(),
          .ledgers = {{"memory_parameter_peak_bytes", 12}, {"flops_model", 0}},
          .forms = {{"memory_parameter_peak_bytes", 12}},
          .figures = {{"loss_first", 0.1}, {"loss_last", std::nan("")}},
          .rerun = "shardproof run",
          .environment = environment()};
}

std::string refusal(const nlohmann::ordered_json& object) {
  try {
    parse_record(object.dump(), "f:1");
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Record, ComesBackFromItsText) {
  const Record sent = record();
  const std::string text = to_json(sent);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Record read = parse_record(text, "here");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.workload, sent.workload);
  EXPECT_EQ(read.compared, sent.compared);
  EXPECT_EQ(read.track, Track::f64);
  EXPECT_EQ(read.verdict, Verdict::pass);
  EXPECT_EQ(read.delays, 3);
  EXPECT_EQ(read.injections, sent.injections);
  EXPECT_EQ(read.ledgers, sent.ledgers);
  EXPECT_EQ(read.forms, sent.forms);
  EXPECT_EQ(read.figures[0].second, 0.1);
  EXPECT_TRUE(std::isnan(read.figures[1].second));
  EXPECT_EQ(read.environment, sent.environment);
}

TEST(Record, ADefaultOneIsAnErrorThatDoesNotValidateWithoutAReason) {
  Record empty;
  empty.environment = environment();
  empty.case_text = "tiny | dp1 | 1 rank | exact | cpu | threads";
  empty.rerun = "shardproof run";
  EXPECT_EQ(empty.verdict, Verdict::error);
  EXPECT_THROW(parse_record(to_json(empty), "here"), BadInput);
  empty.reason = "did not end";
  EXPECT_NO_THROW(parse_record(to_json(empty), "here"));
}

TEST(Record, TextThatIsNotUtf8IsReplacedNotRefused) {
  Record broken = record();
  broken.workload = "\xff\xfe";
  EXPECT_NO_THROW(parse_record(to_json(broken), "here"));
}

TEST(Record, EveryKeyIsRequired) {
  const auto whole = nlohmann::ordered_json::parse(to_json(record()));
  for (const auto& [key, value] : whole.items()) {
    auto object = whole;
    object.erase(key);
    EXPECT_NE(refusal(object).find("f:1: \"" + key + "\" is missing"), std::string::npos) << key;
  }
  for (const auto& [key, value] : whole["environment"].items()) {
    auto object = whole;
    object["environment"].erase(key);
    EXPECT_EQ(refusal(object), "f:1: environment: \"" + key + "\" is missing");
  }
}

TEST(Record, EveryKeyHasAType) {
  const auto whole = nlohmann::ordered_json::parse(to_json(record()));
  for (const auto& [key, value] : whole.items()) {
    auto object = whole;
    object[key] = nlohmann::ordered_json::array({1});
    EXPECT_NE(refusal(object), "accepted") << key;
  }
}

TEST(Record, WrongValuesAreNamed) {
  const auto whole = nlohmann::ordered_json::parse(to_json(record()));
  const auto with = [&](const char* key, const nlohmann::ordered_json& value) {
    auto object = whole;
    object[key] = value;
    return refusal(object);
  };
  EXPECT_EQ(with("verdikt", 1), "f:1: unknown key \"verdikt\": did you mean \"verdict\"?");
  EXPECT_EQ(with("verdict", "ok"),
            "f:1: unknown verdict \"ok\": legal are error, pass, fail, unsupported, skipped, mistrusted, inconclusive");
  EXPECT_EQ(with("ranks", 0), "f:1: \"ranks\" is 0, which is below 1");
  EXPECT_EQ(with("ranks", 1.5), "f:1: \"ranks\" must be a whole number of 64 bits, not number");
  EXPECT_EQ(with("compared", 0), "f:1: a pass that compared nothing is none");
  EXPECT_EQ(with("compared", 9223372036854775808u), "f:1: \"compared\" must be a whole number of 64 bits, not number");
  EXPECT_EQ(with("digest", "xyz"), "f:1: \"digest\" is not 64 hexadecimal digits");
  EXPECT_EQ(with("track", "f32"), "f:1: unknown track \"f32\": legal are exact, f64, native");
  EXPECT_EQ(with("digest_steps", 0), "f:1: \"digest_steps\" must be 0 where there is no digest, and only there");
  EXPECT_EQ(with("case", "nonsense").substr(0, 36), "f:1: case \"nonsense\": 1 parts, not 6");
  EXPECT_EQ(with("case", "tiny | dp3 | 3 ranks | exact | cpu | threads"),
            "f:1: \"track\" and \"ranks\" must be those of \"case\"");
  EXPECT_EQ(with("rerun", ""), "f:1: \"rerun\" is empty");
  EXPECT_EQ(with("judged", ""), "f:1: a pass does not say what was judged");
  EXPECT_EQ(with("forms", {{"memory_parameter_peak_bytes", 13}}),
            "f:1: a pass whose memory_parameter_peak_bytes is 12, its form says 13");
  EXPECT_EQ(with("reason", "because"), "f:1: \"reason\" must be empty for a pass, and only then");
  EXPECT_EQ(with("schema", "shardproof.record/2"),
            "f:1: \"schema\" is \"shardproof.record/2\": this program reads \"shardproof.record/1\"");
  EXPECT_EQ(with("ledgers", {{"a", -1}}), "f:1: ledgers: \"a\" is -1, which is below 0");
  EXPECT_EQ(with("figures", {{"a", "1"}}), "f:1: figures: \"a\" must be a number or null");
}

TEST(Record, DoubledKeysAndBrokenTextAreRefused) {
  const std::string text = to_json(record());
  EXPECT_THROW(parse_record("{\"case\":1," + text.substr(1), "here"), BadInput);
  std::string nested = text;
  nested.insert(nested.find("\"cores\""), "\"cores\":1,");
  EXPECT_THROW(parse_record(nested, "here"), BadInput);
  EXPECT_THROW(parse_record(text.substr(0, text.size() / 2), "here"), BadInput);
  for (const char* other : {"", "[]", "null", "{}", "1", "{} {}"})
    EXPECT_THROW(parse_record(other, "here"), BadInput) << other;
}

TEST(Record, DeepNestingIsRefusedNotFollowed) {
  std::string text = to_json(record());
  const auto at = text.find("\"libraries\":") + 12;
  text.insert(at, std::string(200'000, '['));
  EXPECT_THROW(parse_record(text, "here"), BadInput);
}

TEST(Record, AFormThatDiffersFromItsLedgerIsADisagreement) {
  Record checked = record();
  EXPECT_TRUE(disagreements(checked).empty());
  checked.forms[0].second = 13;
  checked.forms.emplace_back("memory_gradient_peak_bytes", 5);
  EXPECT_EQ(disagreements(checked),
            (std::vector<std::string>{"memory_parameter_peak_bytes is 12, its form says 13",
                                      "memory_gradient_peak_bytes has a form (5) but no ledger"}));
}

// The schema and parse_record say the same: an independent validator accepts what is emitted and refuses what
// parse_record refuses.
class Schema : public ::testing::Test {
 protected:
  static bool accepts(const std::string& json) {
    const shardproof::testing::Folder folder;
    const std::string path = (folder / "record.json").string();
    std::ofstream(path) << json;
    const std::string program =
        "import json, sys\n"
        "from jsonschema import Draft202012Validator as V\n"
        "schema = json.load(open(sys.argv[1]))\n"
        "V.check_schema(schema)\n"
        "sys.exit(0 if V(schema).is_valid(json.load(open(sys.argv[2]))) else 3)\n";
    const std::string line =
        SHARDPROOF_PYTHON " -c '" + program + "' " + SHARDPROOF_SOURCE "/results/record.schema.json " + path;
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)) << "the validator failed";
    return WEXITSTATUS(status) == 0;
  }
};

TEST_F(Schema, AcceptsWhatIsEmitted) {
  EXPECT_TRUE(accepts(to_json(record())));
  Record failed = record();
  failed.verdict = Verdict::fail;
  failed.reason = "the loss differs";
  failed.digest = "";
  failed.digest_steps = 0;
  EXPECT_TRUE(accepts(to_json(failed)));
}

TEST_F(Schema, RefusesWhatParsingRefuses) {
  const auto whole = nlohmann::ordered_json::parse(to_json(record()));
  const std::pair<const char*, nlohmann::ordered_json> wrong[] = {
      {"verdict", "ok"},   {"compared", 0}, {"reason", "because"}, {"digest", "xyz"}, {"digest_steps", 0},
      {"digest", nullptr}, {"rerun", ""},   {"unknown", 1},        {"ranks", 1.5}};
  for (const auto& [key, value] : wrong) {
    auto object = whole;
    object[key] = value;
    EXPECT_FALSE(accepts(object.dump())) << key;
    EXPECT_NE(refusal(object), "accepted") << key;
  }
}

TEST(Environment, IsFilledIn) {
  const Environment here = environment();
  EXPECT_FALSE(here.host.empty() || here.processor.empty() || here.compiler.empty() || here.commit.empty());
  for (const char* flag : {"-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-march="})
    EXPECT_NE(here.flags.find(flag), std::string::npos) << flag << " in " << here.flags;
  EXPECT_GE(here.cores, 1);
  EXPECT_GT(here.memory_bytes, 1 << 20);
  EXPECT_EQ(here.libraries.at(0).first, "oneDNN");
  EXPECT_NE(here.libraries.at(1).second.find("core "), std::string::npos);
  EXPECT_EQ(parse_environment(to_json(here), "here"), here);
}

TEST(Environment, NamesTheVariablesThatChangeARun) {
  setenv("OPENBLAS_CORETYPE", "Haswell", 1);
  const Environment here = environment();
  unsetenv("OPENBLAS_CORETYPE");
  EXPECT_NE(std::ranges::find(here.variables, std::pair<std::string, std::string>("OPENBLAS_CORETYPE", "Haswell")),
            here.variables.end());
}

}  // namespace
}  // namespace shardproof::harness
