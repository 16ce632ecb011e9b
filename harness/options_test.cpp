// SPDX-License-Identifier: Apache-2.0
#include "harness/options.hpp"

#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "harness/text.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

const Command command = {"train", "Trains", "shardproof train --steps 3", nullptr};

struct Given {
  std::optional<std::int64_t> steps, memory;
  std::optional<Track> track;
  std::string out = "here";
  std::vector<std::string> settings, words;
  std::int64_t shard = 1, shards = 1;
  bool poison = false, helped = false;
};

Given parse(std::vector<std::string> args, bool with_words = true) {
  Given given;
  Options options(command);
  options.number("--steps", given.steps, 1, 1000, "Steps")
      .bytes("--device-memory", given.memory, "Limit")
      .track(given.track, "Track")
      .text("--out", given.out, "FOLDER", "Folder")
      .list("--set", given.settings, "KEY=VALUE", "Settings")
      .shard(given.shard, given.shards)
      .flag("--poison", given.poison, "Poison");
  if (with_words) options.words(given.words, "PATH", "Files");
  given.helped = !options.parse(args);
  return given;
}

std::string refusal(std::vector<std::string> args, bool with_words = true) {
  try {
    parse(std::move(args), with_words);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Options, TakesEveryKind) {
  const Given given = parse({"--steps", "7", "--device-memory=4K", "--track", "f64", "--set", "a=1", "--set=b=x y",
                             "--shard", "2/3", "--poison", "one", "two"});
  EXPECT_EQ(given.steps, 7);
  EXPECT_EQ(given.memory, 4096);
  EXPECT_EQ(given.track, Track::f64);
  EXPECT_EQ(given.out, "here");
  EXPECT_EQ(given.settings, (std::vector<std::string>{"a=1", "b=x y"}));
  EXPECT_EQ(given.words, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(given.shard, 2);
  EXPECT_EQ(given.shards, 3);
  EXPECT_TRUE(given.poison);
}

TEST(Options, LeavesDefaultsAlone) {
  const Given given = parse({});
  EXPECT_FALSE(given.steps || given.memory || given.track || given.poison);
  EXPECT_EQ(given.out, "here");
}

TEST(Options, UnknownOptionsNameTheNearest) {
  EXPECT_EQ(refusal({"--trak", "exact"}), "unknown option \"--trak\": did you mean \"--track\"?");
  EXPECT_EQ(refusal({"-steps=3"}), "unknown option \"-steps\": did you mean \"--steps\"?");
  EXPECT_EQ(refusal({"--halp"}), "unknown option \"--halp\": did you mean \"--help\"?");
}

TEST(Options, DoubledOptionsAreRefusedEvenWhenTheyAgree) {
  EXPECT_EQ(refusal({"--steps", "3", "--steps", "3"}), "--steps is given 2 times");
  EXPECT_EQ(refusal({"--out", "a", "--out=b", "--out", "c"}), "--out is given 3 times");
}

TEST(Options, AMissingValueIsNamed) { EXPECT_EQ(refusal({"--steps"}), "--steps: a value is missing"); }

TEST(Options, EveryFindingIsReported) {
  EXPECT_EQ(refusal({"--steps", "0", "--track", "exakt", "--poisn"}),
            "unknown option \"--poisn\": did you mean \"--poison\"?\n"
            "--steps: \"0\" is not a whole number from 1 to 1000\n"
            "--track: unknown track \"exakt\": did you mean \"exact\"?");
}

TEST(Options, WordsAreRefusedWhereThereAreNone) {
  EXPECT_EQ(refusal({"tiny"}, false), "unexpected \"tiny\": shardproof train takes options only");
}

TEST(Options, OneWordIsOne) {
  std::string word;
  Options options(command);
  options.word(word, "CASE", "A case");
  EXPECT_TRUE(options.parse(std::vector<std::string>{"a | b"}));
  EXPECT_EQ(word, "a | b");
  Options again(command);
  again.word(word, "CASE", "A case");
  try {
    again.parse(std::vector<std::string>{"a", "b"});
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "unexpected \"b\": shardproof train takes one CASE: quote it");
  }
}

TEST(Options, WrongNumbersAreRefused) {
  for (const char* text : {"", "0", "-1", "1001", "1.5", "1e3", "0x10", " 3", "3 ", "three", "99999999999999999999"})
    EXPECT_NE(refusal({"--steps", text}), "accepted") << text;
  EXPECT_EQ(parse({"--steps", "1000"}).steps, 1000);
}

TEST(Options, WrongTimesAndShardsAreRefused) {
  EXPECT_EQ(refusal({"--out", ""}), "--out: the value is empty");
  for (const char* text : {"", "1", "0/3", "4/3", "/3", "1/", "1/0", "a/b", "-1/3"})
    EXPECT_NE(refusal({"--shard", text}), "accepted") << text;
}

TEST(Options, HelpIsPrintedWithTheExample) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(parse({"--help"}).helped);
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* part : {"--steps", "--set", "shardproof train --steps 3"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Bytes, AreReadWithUnits) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("513"), 513);
  EXPECT_EQ(parse_bytes("1.5K"), 1536);
  EXPECT_EQ(parse_bytes("3M"), 3 << 20);
  EXPECT_EQ(parse_bytes("16G"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("2T"), std::int64_t{2} << 40);
  for (const char* text : {"", "K", "-1", "1.5", "nan", "inf", "1e30", "4 G", "4g", "4GB", "0x10"})
    EXPECT_THROW(parse_bytes(text), BadInput) << text;
}

TEST(Bytes, ArePrintedForPeople) {
  EXPECT_EQ(print_bytes(0), "0 B");
  EXPECT_EQ(print_bytes(1023), "1023 B");
  EXPECT_EQ(print_bytes(1024), "1.00 KiB");
  EXPECT_EQ(print_bytes(std::int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(print_bytes(std::numeric_limits<std::int64_t>::max()), "8388608.00 TiB");
}

TEST(RerunLine, IsReadBackByAShell) {
  const std::vector<std::string> words = {"run", "--strategy", "dp1 microbatches=4", "it's", "", "$HOME", "a=b"};
  const std::string line = rerun_line(words);
  EXPECT_TRUE(line.ends_with(" run --strategy 'dp1 microbatches=4' 'it'\\''s' '' '$HOME' a=b")) << line;
  EXPECT_TRUE(line.starts_with("/")) << "it works from any folder: " << line;
}

TEST(Printable, KeepsTextAndHidesTheRest) {
  EXPECT_EQ(printable("a\tb\nc \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "a\tb\nc \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable(std::string_view("\x1b[31m\0\x7f", 7)), "?[31m??");
  EXPECT_EQ(printable("\xff\xc3"), "??");    // no first byte; cut off
  EXPECT_EQ(printable("\xc3z\xa9"), "?z?");  // no continuation; a continuation alone
  EXPECT_EQ(printable("\xe2\x82"), "??");
  EXPECT_EQ(printable("\xc0\xaf"), "??");  // overlong
}

TEST(Table, PadsColumns) { EXPECT_EQ(table({{"a", "bbb", "c"}, {"aa", "b"}, {}}), "a   bbb  c\naa  b\n\n"); }

TEST(Options, TimesHaveUnits) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("30m"), 1800);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  for (const char* text : {"", "m", "0", "-1s", "1d", "nan", "inf", "1 m", "1e12"})
    EXPECT_THROW(parse_duration(text), BadInput) << text;
}

}  // namespace
}  // namespace shardproof::harness
