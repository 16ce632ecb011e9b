// SPDX-License-Identifier: Apache-2.0
#include "harness/run_folder.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/signals.hpp"
#include "harness/validate.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("run_folder_test." + std::to_string(getpid()));
    fs::create_directory(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  static Record record(const std::string& name) {
    return {.case_text = name + " | dp1 | 1 rank | exact | cpu | threads",
            .verdict = Verdict::fail,
            .reason = "<it> differs & \"so\"",
            .figures = {{"seconds", 1.5}},
            .rerun = "shardproof run",
            .environment = environment()};
  }
  static ExitCode run(RunFolder& folder, std::initializer_list<const char*> names) {
    return folder.run("shardproof run", [&] {
      for (const char* name : names) folder.add(record(name));
      return ExitCode::check_failed;
    });
  }
  static std::string refusal(const fs::path& path, bool overwrite = false) {
    try {
      RunFolder folder(path, overwrite ? Existing::overwrite : Existing::refuse);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path root_;
};

TEST_F(RunFolderTest, HoldsWhatWasRun) {
  const fs::path path = root_ / "a/b";
  {
    RunFolder folder(path, Existing::refuse);
    EXPECT_EQ(run(folder, {"one", "two"}), ExitCode::check_failed);
  }
  EXPECT_EQ(validate(path), "a run of 2 records, exit code 1");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"benchmark.json", "junit.xml", "records.csv", "records.jsonl",
                                             "report.html", "summary.json"}));
  const std::string junit = read_file(path / "junit.xml");
  EXPECT_NE(junit.find("tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\" time=\"3.000\""), std::string::npos)
      << junit;
  EXPECT_NE(junit.find("&lt;it&gt; differs &amp; &quot;so&quot;&#10;rerun: shardproof run"), std::string::npos)
      << junit;
}

TEST_F(RunFolderTest, ARunIsKeptUnlessItMayBeOverwritten) {
  {
    RunFolder folder(root_ / "x", Existing::refuse);
    run(folder, {"one"});
  }
  const std::string before = read_file(root_ / "x/records.jsonl");
  EXPECT_EQ(refusal(root_ / "x"),
            (root_ / "x").string() + " holds a run already: choose another --out, or --overwrite it");
  EXPECT_EQ(read_file(root_ / "x/records.jsonl"), before);
  EXPECT_EQ(validate(root_ / "x"), "a run of 1 record, exit code 1");
  {
    RunFolder folder(root_ / "x", Existing::overwrite);
    EXPECT_FALSE(fs::exists(root_ / "x/summary.json"));
    run(folder, {"two", "three"});
  }
  EXPECT_EQ(validate(root_ / "x"), "a run of 2 records, exit code 1");
}

TEST_F(RunFolderTest, OtherFilesInTheFolderStay) {
  std::ofstream(root_ / "notes.txt") << "mine";
  {
    RunFolder folder(root_, Existing::overwrite);
    run(folder, {"one"});
  }
  EXPECT_EQ(read_file(root_ / "notes.txt"), "mine");
}

TEST_F(RunFolderTest, ASecondWriterIsToldByWhom) {
  RunFolder folder(root_ / "x", Existing::refuse);
  const std::string expected =
      (root_ / "x").string() + " is being written by process " + std::to_string(getpid()) + ": choose another --out";
  EXPECT_EQ(refusal(root_ / "x"), expected);
  EXPECT_EQ(refusal(root_ / "x", true), expected);
  EXPECT_TRUE(fs::exists(root_ / "x/records.jsonl")) << "the refused one must not touch the folder";
}

TEST_F(RunFolderTest, TheLockOfADeadProcessDoesNotHold) {
  std::ofstream(root_ / "run.lock") << "1";
  EXPECT_EQ(refusal(root_), "accepted");
}

TEST_F(RunFolderTest, RecordsAreOnTheDiskBeforeTheRunEnds) {
  RunFolder folder(root_ / "x", Existing::refuse);
  folder.add(record("one"));
  EXPECT_EQ(validate(root_ / "x/records.jsonl"), "1 record");
  EXPECT_THROW(validate(root_ / "x"), BadInput) << "a run that did not end is no run";
}

TEST_F(RunFolderTest, WhenTheWorkThrowsTheSummarySaysSo) {
  {
    RunFolder folder(root_ / "x", Existing::refuse);
    EXPECT_THROW(folder.run("line",
                            [&]() -> ExitCode {
                              folder.add(record("one"));
                              throw Interrupted("interrupted by SIGINT");
                            }),
                 Interrupted);
  }
  EXPECT_NE(read_file(root_ / "x/summary.json").find("\"exit_code\": 130"), std::string::npos);
  EXPECT_EQ(validate(root_ / "x"), "a run of 1 record, exit code 130");
}

TEST_F(RunFolderTest, AnInterruptedRunNeedsNoRecord) {
  {
    RunFolder folder(root_ / "x", Existing::refuse);
    EXPECT_THROW(folder.run("line", []() -> ExitCode { throw Interrupted("interrupted by SIGINT"); }), Interrupted);
  }
  EXPECT_EQ(validate(root_ / "x"), "a run of 0 records, exit code 130");
  {
    RunFolder folder(root_ / "y", Existing::refuse);
    folder.run("line", [] { return ExitCode::pass; });
  }
  EXPECT_THROW(validate(root_ / "y"), BadInput) << "nothing passes by doing nothing";
}

TEST_F(RunFolderTest, TheSummaryMustFitItsRecords) {
  const auto spoiled = [&](const std::string& from, const std::string& to) {
    fs::remove_all(root_ / "x");
    {
      RunFolder folder(root_ / "x", Existing::refuse);
      run(folder, {"one"});
    }
    std::string text = read_file(root_ / "x/summary.json");
    const auto at = text.find(from);
    if (at == text.npos) return std::string("no ") + from;
    write_file(root_ / "x/summary.json", text.replace(at, from.size(), to));
    try {
      return validate(root_ / "x");
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(spoiled("\"fail\": 1", "\"fail\": 0").find("\"fail\" is 0, but there are 1"), std::string::npos);
  EXPECT_NE(spoiled("\"pass\": 0", "\"pass\": 1").find("\"pass\" is 1, but there are 0"), std::string::npos);
  EXPECT_NE(spoiled("\"pass\": 0", "\"pass\": \"x\"").find("must be a whole number"), std::string::npos);
  EXPECT_NE(spoiled("\"cases\": 1", "\"cases\": 2").find("\"cases\" is 2"), std::string::npos);
  fs::remove(root_ / "x/junit.xml");
  EXPECT_THROW(validate(root_ / "x"), BadInput);
}

// In a process of its own, whose files may not grow: the same error path as a full disk.
TEST_F(RunFolderTest, WhatEndedTheWorkCountsMoreThanAFullDisk) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    catch_signals();
    int code = 1;
    try {
      RunFolder folder(root_ / "x", Existing::refuse);
      rlimit none{0, 0};
      setrlimit(RLIMIT_FSIZE, &none);
      folder.run("line", []() -> ExitCode { throw Interrupted("interrupted by SIGINT"); });
    } catch (const Interrupted&) {
      code = 0;
    } catch (const std::exception&) {
      code = 2;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(RunFolderTest, ALockThatIsNoFileIsLeftAlone) {
  std::ofstream(root_ / "target") << "mine";
  fs::create_directory(root_ / "x");
  fs::create_symlink(root_ / "target", root_ / "x/run.lock");
  EXPECT_THROW(RunFolder(root_ / "x", Existing::refuse), WriteError);
  EXPECT_EQ(read_file(root_ / "target"), "mine");
  fs::remove(root_ / "x/run.lock");
  ASSERT_EQ(mkfifo((root_ / "x/run.lock").c_str(), 0666), 0);
  EXPECT_THROW(RunFolder(root_ / "x", Existing::refuse), WriteError);
  EXPECT_TRUE(fs::exists(root_ / "x/run.lock"));
}

TEST_F(RunFolderTest, WhereItCannotBeWrittenItSaysWhy) {
  std::ofstream(root_ / "file") << "x";
  for (const char* name : {"file", "file/below", "file/below/more"})
    EXPECT_THROW(RunFolder(root_ / name, Existing::refuse), WriteError) << name;
}

// In a process of its own, whose files may not grow beyond the limit: the same error path as a full disk.
TEST_F(RunFolderTest, AFullDiskLeavesWholeRecords) {
  const fs::path path = root_ / "x";
  const auto size = static_cast<rlim_t>(to_json(record("one")).size());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    catch_signals();
    int code = 1;
    try {
      RunFolder folder(path, Existing::refuse);
      folder.add(record("one"));
      rlimit limit{};
      getrlimit(RLIMIT_FSIZE, &limit);
      const rlimit none = limit;
      limit.rlim_cur = size + size / 2;
      setrlimit(RLIMIT_FSIZE, &limit);
      try {
        folder.add(record("two"));
      } catch (const WriteError& error) {
        code = std::string(error.what()).find("File too large") != std::string::npos ? 0 : 2;
      }
      setrlimit(RLIMIT_FSIZE, &none);
      folder.add(record("three"));
    } catch (const std::exception&) {
      code = 3;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(validate(path / "records.jsonl"), "2 records") << "the first, and the one after there was space again";
}

TEST_F(RunFolderTest, CutRecordsAreFound) {
  const std::string line = to_json(record("one"));
  std::ofstream(root_ / "cut.jsonl") << line << "\n" << line.substr(0, 100);
  try {
    validate(root_ / "cut.jsonl");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(error.what(),
              (root_ / "cut.jsonl").string() + ":2: the record does not end with a newline: it was cut off");
  }
  write_file(root_ / "empty.jsonl", "");
  EXPECT_THROW(validate(root_ / "empty.jsonl"), BadInput);
  EXPECT_THROW(validate(root_ / "missing.jsonl"), BadInput);
  EXPECT_THROW(validate(root_ / "missing"), BadInput);
  EXPECT_THROW(validate(root_), BadInput) << "an empty folder is no run";
}

TEST(Signals, APipeThatNobodyReadsIsAnError) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    catch_signals();
    int ends[2];
    if (pipe(ends) != 0) _exit(2);
    close(ends[0]);
    _exit(write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Signals, TheFirstRaisesAFlagAndTheSecondKills) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    catch_signals();
    if (interrupted()) _exit(1);
    raise(SIGTERM);
    if (!interrupted()) _exit(2);
    try {
      stop_if_interrupted();
      _exit(3);
    } catch (const Interrupted&) {
    }
    raise(SIGINT);
    _exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

}  // namespace
}  // namespace shardproof::harness
