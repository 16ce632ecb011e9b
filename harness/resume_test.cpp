// SPDX-License-Identifier: Apache-2.0
#include "harness/resume.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/saved_run.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;

class ResumeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("resume_test." + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::vector<std::optional<Record>> resumed(RunFolder& folder, std::span<const CaseKey> keys,
                                                    const Environment& environment) {
    return resume(
        folder, keys.size(), [&](std::size_t k) { return keys[k]; }, environment);
  }
  static CaseKey key(const std::string& name) {
    return {.case_text = name + " | dp1 | 1 rank | exact | cpu | threads", .rerun = "shardproof run " + name};
  }
  Record record(const std::string& name, Verdict verdict, const std::string& judged = "full") const {
    const bool passed = verdict == Verdict::pass;
    return {.case_text = key(name).case_text,
            .workload_hash = std::string(64, 'a'),
            .verdict = verdict,
            .reason = passed ? "" : "it is so",
            .judged = judged,
            .compared = passed ? 1 : 0,
            .rerun = key(name).rerun,
            .environment = here_};
  }
  /// One of each verdict, with a trace each that says whose it is; the run did not end.
  void stopped_run() const {
    RunFolder folder(folder_, Existing::refuse);
    for (const auto& [name, verdict, judged] : {std::tuple("failed", Verdict::fail, "full"),
                                                {"passed", Verdict::pass, "full"},
                                                {"idle", Verdict::skipped, "full"},
                                                {"refused", Verdict::unsupported, ""},
                                                {"broken", Verdict::error, "full"},
                                                {"unjudged", Verdict::skipped, "unchecked"},
                                                {"undecided", Verdict::inconclusive, "full"}}) {
      folder.add(record(name, verdict, judged));
      folder.add_trace(name);
    }
  }
  std::vector<std::string> cases_there() const {
    std::vector<std::string> names;
    for (const Record& r : read_records(folder_ / "records.jsonl", true))
      names.push_back(r.case_text.substr(0, r.case_text.find(' ')));
    return names;
  }
  std::string refusal(std::span<const CaseKey> keys, const Environment& environment) const {
    try {
      RunFolder folder(folder_, Existing::resume);
      resumed(folder, keys, environment);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  }

  const Environment here_ = environment();
  const std::vector<CaseKey> keys_ = {key("new"),     key("passed"), key("failed"),   key("idle"),
                                      key("refused"), key("broken"), key("unjudged"), key("undecided")};
  fs::path folder_;
};

TEST_F(ResumeTest, WhatPassedOrWasRefusedStaysWithItsTraces) {
  stopped_run();
  {
    RunFolder folder(folder_, Existing::resume);
    std::vector<std::string> there;
    const auto earlier = resumed(folder, keys_, here_);
    ASSERT_EQ(earlier.size(), keys_.size());
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      if (!earlier[k]) continue;
      EXPECT_EQ(earlier[k]->case_text, keys_[k].case_text);
      there.push_back(keys_[k].rerun.substr(15));
    }
    EXPECT_EQ(there, (std::vector<std::string>{"passed", "refused", "unjudged"}));
    EXPECT_EQ(cases_there(), there) << "in the order in which they ended";
    EXPECT_EQ(read_file(folder_ / "trace.json"), "passed");
    EXPECT_EQ(read_file(folder_ / "trace-2.json"), "refused");
    EXPECT_EQ(read_file(folder_ / "trace-3.json"), "unjudged");
    for (const int k : {4, 5, 6, 7}) EXPECT_FALSE(fs::exists(folder_ / ("trace-" + std::to_string(k) + ".json"))) << k;
    folder.add(record("new", Verdict::pass));
    folder.add_trace("new");
  }
  EXPECT_EQ(cases_there(), (std::vector<std::string>{"passed", "refused", "unjudged", "new"}));
  EXPECT_EQ(read_file(folder_ / "trace-4.json"), "new");
}

TEST_F(ResumeTest, ReportsAreOfAllRecords) {
  {
    RunFolder folder(folder_, Existing::refuse);
    folder.run("shardproof run first", [&] {
      folder.add(record("passed", Verdict::pass));
      folder.add(record("failed", Verdict::fail));
      return ExitCode::check_failed;
    });
  }
  {
    RunFolder folder(folder_, Existing::resume);
    const auto earlier = resumed(folder, keys_, here_);
    EXPECT_FALSE(fs::exists(folder_ / "summary.json")) << "the run has not ended";
    folder.run("shardproof run again", [&] {
      folder.add(record("failed", Verdict::pass));
      return ExitCode::pass;
    });
  }
  const SavedRun run = read_run(folder_);
  EXPECT_EQ(run.records.size(), 2u);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.command, "shardproof run again");
  EXPECT_NE(read_file(folder_ / "junit.xml").find("tests=\"2\""), std::string::npos);
}

TEST_F(ResumeTest, ACaseThatComesUpTwiceNeedsTwoRecords) {
  {
    RunFolder folder(folder_, Existing::refuse);
    folder.add(record("passed", Verdict::pass));
  }
  RunFolder folder(folder_, Existing::resume);
  const std::vector<CaseKey> twice = {key("passed"), key("passed")};
  const auto earlier = resumed(folder, twice, here_);
  EXPECT_TRUE(earlier[0]);
  EXPECT_FALSE(earlier[1]);
}

TEST_F(ResumeTest, WhatMetNoCallIsTriedAgain) {
  {
    RunFolder folder(folder_, Existing::refuse);
    Record unmet = record("unjudged", Verdict::skipped, "unchecked");
    unmet.injections = {"skip:axis=pp"};
    folder.add(unmet);
  }
  RunFolder folder(folder_, Existing::resume);
  EXPECT_FALSE(resumed(folder, std::vector{key("unjudged")}, here_)[0]);
}

TEST_F(ResumeTest, WhereNothingIsARunBegins) {
  for (const bool interrupted : {false, true}) {
    if (interrupted) RunFolder(folder_, Existing::refuse);  // before its first record
    RunFolder folder(folder_, Existing::resume);
    const auto no_key = [](std::size_t) -> CaseKey { throw InternalError("nothing is compared with it"); };
    EXPECT_FALSE(resume(folder, 3, no_key, here_)[2]);
    folder.add(record("new", Verdict::pass));
    EXPECT_EQ(cases_there(), std::vector<std::string>{"new"});
    fs::remove_all(folder_);
  }
}

TEST_F(ResumeTest, ARecordThatWasCutOffIsNone) {
  stopped_run();
  std::ofstream(folder_ / "records.jsonl", std::ios::app) << to_json(record("new", Verdict::pass)).substr(0, 99);
  RunFolder folder(folder_, Existing::resume);
  EXPECT_FALSE(resumed(folder, keys_, here_)[0]);
  EXPECT_EQ(cases_there().size(), 3u);
}

TEST_F(ResumeTest, AnotherRunsRecordsAreRefusedAndStay) {
  stopped_run();
  const std::string before = read_file(folder_ / "records.jsonl");
  EXPECT_EQ(refusal(std::span(keys_).first(4), here_),
            "--resume: " + (folder_ / "records.jsonl").string() + ":4 is of another run: shardproof run refused");
  std::vector<CaseKey> other_options = keys_;
  other_options[1].rerun += " --poison";
  EXPECT_NE(refusal(other_options, here_).find(":2 is of another run: shardproof run passed"), std::string::npos);
  std::vector<CaseKey> changed = keys_;
  changed[1].fabric = Fabric{"slow", 1e-3, 1e9};
  EXPECT_NE(refusal(changed, here_).find(":2 was made when a file of its line held something else"), std::string::npos);
  changed[1].fabric.reset();
  changed[1].workload_hash = [] { return std::string(64, 'b'); };
  EXPECT_NE(refusal(changed, here_).find(":2 was made when a file of its line held something else"), std::string::npos);
  Environment elsewhere = here_;
  elsewhere.cores += 1;
  EXPECT_NE(refusal(keys_, elsewhere).find("was made elsewhere (cores "), std::string::npos);
  std::ofstream(folder_ / "records.jsonl", std::ios::app) << "{}\n";
  EXPECT_NE(refusal(keys_, here_).find("records.jsonl:8"), std::string::npos);
  fs::resize_file(folder_ / "records.jsonl", before.size());
  EXPECT_EQ(read_file(folder_ / "records.jsonl"), before);
  EXPECT_EQ(read_file(folder_ / "trace-7.json"), "undecided");
  EXPECT_EQ(refusal(keys_, here_), "accepted");
}

}  // namespace
}  // namespace shardproof::harness
