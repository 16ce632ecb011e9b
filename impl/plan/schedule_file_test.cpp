// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "impl/plan/checker.hpp"
#include "impl/plan/plan.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

namespace fs = std::filesystem;

class ScheduleFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("shardproof_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "s.csv") const { return (folder_ / name).string(); }
  std::string write(const std::string& text) const {
    std::ofstream(path()) << text;
    return path();
  }
  /// "" where it can be run; without the folder's name.
  std::string wrong(const std::string& text) const {
    std::string why = read_schedule_file(write(text)).wrong;
    if (const auto at = why.find(folder_.string()); at != why.npos) why.erase(at, folder_.string().size() + 1);
    return why;
  }
  /// Why tiny refuses the strategy, FILE in it standing for the file.
  std::string refusal(std::string strategy) const {
    const std::string mark = "FILE", file = "file:" + path();
    strategy.replace(strategy.find(mark), mark.size(), file);
    try {
      require_legal(parse_strategy(strategy), workload::load("tiny"));
    } catch (const NotSupported& error) {
      std::string text = error.what();
      for (auto at = text.find(file); at != text.npos; at = text.find(file)) text.replace(at, file.size(), mark);
      return text;
    }
    return "legal";
  }

  fs::path folder_;
};

// The textbook order of 1F1B: both ranks wait in a send after their second action unless one may be ahead.
constexpr const char* textbook = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";

TEST_F(ScheduleFiles, WhatGeneratorsMakeIsReadBackWithTheDepthThatItNeeds) {
  std::int64_t read = 0, deeper = 0;
  for (const ScheduleGenerator* generator : schedules()) {
    if (generator->stale != workload::StaleProgram::Rule::none) continue;
    for (const std::int64_t ranks : {2, 3, 4})
      for (const std::int64_t microbatches : {1, 5, 8}) {
        const ScheduleShape shape{.ranks = ranks, .microbatches = microbatches, .chunks = generator->chunks};
        if (!generator->refusal(shape).empty()) continue;
        const Schedule made = generator->generate(shape);
        const ScheduleFile file = read_schedule_file(write(print(made)));
        ++read;
        EXPECT_EQ(file.wrong, "") << generator->name;
        EXPECT_EQ(file.schedule.ranks, made.ranks) << generator->name;
        EXPECT_EQ(file.stages, shape.stages());
        EXPECT_EQ(file.microbatches, microbatches);
        EXPECT_LE(file.schedule.send_depth, made.send_depth) << generator->name;
        EXPECT_TRUE(findings(file.schedule, file.stages, microbatches).empty()) << generator->name;
        if (file.schedule.send_depth == 0) continue;
        ++deeper;
        Schedule less = file.schedule;
        --less.send_depth;
        EXPECT_FALSE(findings(less, file.stages, microbatches).empty()) << generator->name;
      }
  }
  EXPECT_GT(read, 50);
  EXPECT_GT(deeper, 5);
}

TEST_F(ScheduleFiles, TheLeastDepthIsFound) {
  EXPECT_EQ(read_schedule_file(write(textbook)).schedule.send_depth, 1);
  // Rank 0 sends d forwards before it takes a gradient. With depth k rank 1 takes k + 1 of them before its gradients
  // fill the way back, and k more can be under way: d <= 2k + 1.
  for (const std::int64_t d : {2, 3, 4, 5, 6, 9}) {
    std::string first, second;
    for (std::int64_t m = 0; m < d; ++m) first += "0F" + std::to_string(m) + ",";
    for (std::int64_t m = 0; m < d; ++m) first += "0B" + std::to_string(m) + ",";
    for (std::int64_t m = 0; m < d; ++m) second += "1F" + std::to_string(m) + ",1B" + std::to_string(m) + ",";
    const ScheduleFile file = read_schedule_file(write(first + "\n" + second));
    EXPECT_EQ(file.wrong, "");
    EXPECT_EQ(file.schedule.send_depth, d / 2) << d;
  }
}

TEST_F(ScheduleFiles, AFileIsReadWhenAskedForAndOnceForAllCopies) {
  const ScheduleSource source = "file:" + path();
  EXPECT_TRUE(source.is_file());
  const ScheduleSource copy = source;  // NOLINT(performance-unnecessary-copy-initialization): what is tested
  write(textbook);
  EXPECT_EQ(source.file()->stages, 2);
  write("0F0,0B0\n");
  EXPECT_EQ(copy.file(), source.file());
  EXPECT_EQ(ScheduleSource(source.text()).file()->stages, 1) << "another value reads it again";
  EXPECT_EQ(ScheduleSource(source.text()), source);
  EXPECT_FALSE(source == ScheduleSource("file:" + path("other")));
  EXPECT_FALSE(ScheduleSource("gpipe").is_file());
  EXPECT_EQ(ScheduleSource("gpipe").file(), nullptr);
}

TEST_F(ScheduleFiles, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(wrong("0F0,0B0\n1F0,1X0\n"),
            "line 2, column 6: \"1X0\" is no action: its kind must be F, I, W, B or U and be followed by a number");
  EXPECT_EQ(
      wrong("0F,0B0\n1F0,1X0\n"),
      "line 1, column 2: \"0F\" is no action: its kind must be F, I, W, B or U and be followed by a number; schedule "
      "check lists every finding");
  EXPECT_EQ(wrong("0F0,0B0\n  1B0, 1F0\n"), "line 2, column 3: 1B0 comes before 1F0");
  EXPECT_EQ(wrong("1F0,1B0\n0B0,0F0\n"), "line 2, column 1: 0B0 comes before 0F0");
  EXPECT_NE(wrong("0F0,1F0,0B0,1B0\n").find("deadlock with sends of depth 2: rank 0 waits in 0B0"), std::string::npos)
      << wrong("0F0,1F0,0B0,1B0\n");
  EXPECT_EQ(wrong("0F0,0B0\n\n1F0,1B0\n"), "line 2: there is no action");
  EXPECT_EQ(wrong("0F0,0B0,0U0\n1F0,1B0,1U0\n"),
            "line 1, column 9: 0U0 is an update: a file's steps end with one flush, without U; schedule=pipedream and "
            "schedule=pipedream_2bw have updates inside");
  EXPECT_EQ(wrong("0F0.0,0F0.1,0B0.1,0B0.0\n"),
            "line 1, column 1: 0F0.0 is of a slice: only whole sequences are carried out, as 0F0");
  EXPECT_EQ(wrong(""), "line 1, column 1: there is no rank: each is a line");
  // Stages that no file of this size can hold are found missing, not allocated.
  EXPECT_NE(wrong("2147483648F2147483648,2147483648B2147483648\n"), "");
}

TEST_F(ScheduleFiles, WhatIsNoScheduleIsRefusedAtOnce) {
  std::string binary(100'000, '\0');
  for (std::size_t k = 0; k < binary.size(); ++k) binary[k] = static_cast<char>(k * 7);
  const std::string why = wrong(binary);
  EXPECT_TRUE(why.starts_with("line 1, column 1: ")) << why;
  EXPECT_TRUE(std::ranges::all_of(why, [](unsigned char c) { return c >= ' ' && c <= '~'; })) << why;
  fs::resize_file(path(), 100 << 20);  // sparse
  EXPECT_TRUE(read_schedule_file(path()).wrong.ends_with("it is longer than 67108864 bytes"));
  EXPECT_TRUE(read_schedule_file(path("none")).wrong.ends_with("/none': No such file or directory"));
  EXPECT_TRUE(read_schedule_file(folder_.string()).wrong.ends_with("it is a folder, not a file"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(read_schedule_file(path("pipe")).wrong.ends_with("it is a pipe, not a file"));
  EXPECT_TRUE(read_schedule_file("/dev/zero").wrong.ends_with("it is a device, not a file"));
}

TEST_F(ScheduleFiles, AStrategyRefusesWhatTheFileIsNotFor) {
  EXPECT_EQ(refusal("pp2 schedule=FILE"), "schedule=FILE: cannot read '" + path() +
                                              "': No such file or directory; the nearest legal strategy is pp2");
  write(textbook);
  EXPECT_EQ(refusal("pp2 schedule=FILE microbatches=2"), "legal");
  EXPECT_EQ(refusal("dp2 pp2 tp2 order=tp,pp,dp schedule=FILE microbatches=2 boundary=scattered"), "legal");
  EXPECT_EQ(refusal("pp3 schedule=FILE microbatches=2"),
            "schedule=FILE: it is for 2 ranks and 2 microbatches, pp2 microbatches=2; the nearest legal strategy is "
            "pp3 microbatches=2");
  EXPECT_EQ(refusal("pp2 schedule=FILE"),
            "schedule=FILE: it is for 2 ranks and 2 microbatches, pp2 microbatches=2; the nearest legal strategy is "
            "pp2 schedule=FILE microbatches=2");
  EXPECT_EQ(refusal("schedule=FILE microbatches=2"),
            "schedule=FILE: it is for 2 ranks and 2 microbatches, pp2 microbatches=2; the nearest legal strategy is "
            "microbatches=2");
  for (const std::string chunks : {"1", "2"})
    EXPECT_EQ(refusal("pp2 schedule=FILE microbatches=2 chunks=" + chunks),
              "chunks=" + chunks +
                  " has no effect with a file's schedule, whose stages are its own; the nearest legal "
                  "strategy is pp2 schedule=FILE microbatches=2");
  EXPECT_EQ(refusal("pp2 schedule=FILE microbatches=2 layers=1,1,0"),
            "layers=1,1,0: it has 3 stages, pp2 has 2; the nearest legal strategy is pp2 schedule=FILE microbatches=2");
  EXPECT_EQ(refusal("pp2 schedule=FILE microbatches=2 vertical_sync=on"),
            "vertical_sync=on has no effect without schedule=pipedream; the nearest legal strategy is pp2 "
            "schedule=FILE microbatches=2");
  write("0F0,0B0\n");
  EXPECT_EQ(refusal("schedule=FILE"), "schedule=FILE has no effect with pp1; the nearest legal strategy is dp1");
  // Of one of several refusals the others are not consequences.
  write("0F0,0B0,1F0\n");
  EXPECT_EQ(refusal("pp2 schedule=FILE microbatches=4194304 layers=1,1,0"),
            "schedule=FILE: line 1: 1I0 is missing; schedule check lists every finding; the nearest legal strategy is "
            "pp2");
}

TEST_F(ScheduleFiles, TheTextOfAStrategyIsCanonicalAndParsesBack) {
  const std::string text = "pp2 schedule=file:a=b,c/\xc3\xbc\"*'$.csv microbatches=2";
  EXPECT_EQ(print(parse_strategy("microbatches=2 pp2 schedule=file:a=b,c/\xc3\xbc\"*'$.csv")), text);
  EXPECT_EQ(parse_strategy(print(parse_strategy(text))), parse_strategy(text));
  EXPECT_EQ(contract(parse_strategy(text), Track::native), "EXACT");
  const auto said = [](const std::string& strategy) -> std::string {
    try {
      parse_strategy(strategy);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(said("pp2 schedule=file:"), "\"schedule=file:\": file: is followed by a path, as file:schedule.csv");
  for (const char* path : {"a|b", "a#b", "a\x1b[1m", "a\x7f"})
    EXPECT_EQ(said(std::string("schedule=file:") + path),
              std::string("\"schedule=file:") + path +
                  "\": a path in a strategy is without blanks, control characters, '|' and '#'");
  const std::string hint = "; the path of schedule=file:PATH is one word";
  EXPECT_EQ(said("pp2 schedule=file:my schedule.csv"), "strategy key \"schedule\" is doubled" + hint);
  EXPECT_EQ(said("schedule=file:my tp2.csv"), "\"tp2.csv\": tp must be a whole number from 1 to 2147483648" + hint);
  const std::string blank = said("pp2 schedule=file:an own.csv 3");
  EXPECT_TRUE(blank.starts_with("unknown strategy key \"own\": ")) << blank;
  EXPECT_NE(blank.find(hint + "\nunknown strategy key \"3\""), blank.npos) << blank;
  EXPECT_FALSE(blank.ends_with(hint)) << blank;
  EXPECT_TRUE(said("schedule=s.csv").ends_with(", file:PATH")) << said("schedule=s.csv");
}

TEST_F(ScheduleFiles, StagesNeedNotBeEqualOnRanksNorOnOneRank) {
  // Rank 0 has stages 0, 1 and 3 and rank 1 has stage 2; stage 1 is on both, by microbatch.
  write("0F1,0F0,1F0,3F1,3B1,3F0,3B0,1B0,0B0,0B1\n1F1,2F1,2F0,2B1,2B0,1B1\n");
  const auto w = workload::load("tiny", std::vector<std::string>{"layers=4"});
  const Plan plan = make_plan(w, parse_strategy("pp2 schedule=file:" + path() + " microbatches=2"));
  EXPECT_EQ(plan.stages(), 4);
  EXPECT_EQ(plan.layout.stage_layers.size(), 4u);
  EXPECT_EQ(plan.pipeline.placement.stages_of(0), (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(plan.pipeline.placement.stages_of(1), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(plan.holders(plan.layout["blocks.1.mlp.up.bias"]), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(plan.holders(plan.layout["blocks.2.mlp.up.bias"]), (std::vector<std::int64_t>{1}));
}

}  // namespace
}  // namespace shardproof::plan
