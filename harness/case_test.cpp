// SPDX-License-Identifier: Apache-2.0
#include "harness/case.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

TEST(Case, PrintsAndParsesBack) {
  for (const Case& value :
       {Case{"tiny", {}, "dp1", 1, Track::exact},
        Case{"random:1:17", {"steps=4"}, "dp1 microbatches=3", 1, Track::native},
        Case{"a/b.json", {"documents=4,3", "frozen=*.bias,blocks.0.*"}, "dp2 pp2", 4, Track::f64},
        Case{"my file.json", {"corpus=/a b'c/t.txt", "name=a|b"}, "dp1", 1, Track::exact},
        Case{"\"x\"", {"corpus=\\ \"", "frozen=[\"*.bias\"]", "name=two\tblanks "}, "dp1", 1, Track::exact}}) {
    EXPECT_EQ(parse_case(print(value)), value) << print(value);
  }
  EXPECT_EQ(print({"tiny", {"dropout=0.1"}, "dp1 microbatches=3", 1, Track::exact}),
            "tiny dropout=0.1 | dp1 microbatches=3 | 1 rank | exact | cpu | threads");
  EXPECT_EQ(print({"tiny", {"corpus=my file", "frozen=[\"a\"]"}, "dp1", 1, Track::exact}),
            "tiny \"corpus=my file\" frozen=[\"a\"] | dp1 | 1 rank | exact | cpu | threads");
  EXPECT_EQ(parse_case("  tiny   a=1|dp1  microbatches=2|  2 ranks |f64| cpu|threads "),
            (Case{"tiny", {"a=1"}, "dp1 microbatches=2", 2, Track::f64}));
}

TEST(Case, AListedCaseIsOneToo) {
  const Case value{"tiny", {"corpus=a # b"}, "dp2", 2, Track::exact};
  EXPECT_EQ(listed(value, "n"), "tiny \"corpus=a # b\" | dp2 | 2 ranks | exact | cpu | threads  # n");
  for (const char* entry : {"n", "a | b # c"}) {
    EXPECT_EQ(parse_case(listed(value, entry)), value);
    EXPECT_TRUE(selects(listed(value, entry), entry, value));
    EXPECT_FALSE(selects(listed(value, entry), "other", value));
  }
}

TEST(Case, WhatIsNoCaseIsRefused) {
  for (const char* text :
       {"", "tiny", "tiny | dp1 | 1 rank | exact | cpu", "tiny | dp1 | 1 rank | exact | cpu | threads | x",
        " | dp1 | 1 rank | exact | cpu | threads", "tiny | | 1 rank | exact | cpu | threads",
        "tiny dropout | dp1 | 1 rank | exact | cpu | threads", "tiny | dp1 | 1 | exact | cpu | threads",
        "tiny | dp1 | 0 ranks | exact | cpu | threads", "tiny | dp1 | 2 rank | exact | cpu | threads",
        "tiny | dp1 | x ranks | exact | cpu | threads", "tiny | dp1 | 1 rank | bf16 | cpu | threads",
        "tiny \"a=1 | dp1 | 1 rank | exact | cpu | threads", "tiny | dp1 | 1 rank | exact | cuda | threads",
        "tiny | dp1 | 1 rank | exact | cpu | nccl"}) {
    EXPECT_THROW(parse_case(text), BadInput) << text;
  }
}

// What ran over processes is repeated over threads, and the reverse.
TEST(Case, IsTheSameOnEveryTransport) {
  EXPECT_EQ(parse_case("tiny | dp2 | 2 ranks | exact | cpu | mpi"),
            parse_case("tiny | dp2 | 2 ranks | exact | cpu | threads"));
}

TEST(Case, FiltersAreWholeCasesOrEntries) {
  const Case value{"tiny", {"dropout=0.1"}, "dp1", 1, Track::exact};
  EXPECT_TRUE(selects(print(value), "dropout", value));
  EXPECT_TRUE(selects("dropout", "dropout", value));
  EXPECT_TRUE(selects("tiny*exact*", "dropout", value));
  EXPECT_TRUE(selects("*", "dropout", value));
  EXPECT_FALSE(selects("tiny", "dropout", value));
  EXPECT_FALSE(selects("drop", "dropout", value));
  EXPECT_FALSE(selects("*native*", "dropout", value));
}

}  // namespace
}  // namespace shardproof::harness
