// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "impl/plan/layout.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

using Settings = std::vector<std::string>;

const char* const small =
    "stage_layers     0:1 1:1\n"
    "query_heads      0:1 1:2\n"
    "key_heads        0:1 0:1\n"
    "owned_key_heads  0:1 1:1\n"
    "mlp              0:2 2:3\n"
    "vocab            0:3 3:5\n"
    "# parameter                       dims  decays  trains  split  held     owned    sites\n"
    "token_embedding.weight            5x4   decays  trains  0      0:3,3:5  held     0:embedding,1:head\n"
    "position_embedding.weight         3x4   decays  trains  -      all      tp0      0:embedding\n"
    "blocks.0.norm1.weight             4     -       frozen  -      all      tp0      0:blocks.0\n"
    "blocks.0.norm1.bias               4     -       frozen  -      all      tp0      0:blocks.0\n"
    "blocks.0.attention.query.weight   4x4   decays  trains  0      0:2,2:4  held     0:blocks.0\n"
    "blocks.0.attention.query.bias     4     -       trains  0      0:2,2:4  held     0:blocks.0\n"
    "blocks.0.attention.key.weight     2x4   decays  trains  0      0:2,0:2  0:2,2:2  0:blocks.0\n"
    "blocks.0.attention.key.bias       2     -       trains  0      0:2,0:2  0:2,2:2  0:blocks.0\n"
    "blocks.0.attention.value.weight   2x4   decays  trains  0      0:2,0:2  0:2,2:2  0:blocks.0\n"
    "blocks.0.attention.value.bias     2     -       trains  0      0:2,0:2  0:2,2:2  0:blocks.0\n"
    "blocks.0.attention.output.weight  4x4   decays  trains  1      0:2,2:4  held     0:blocks.0\n"
    "blocks.0.attention.output.bias    4     -       trains  -      all      tp0      0:blocks.0\n"
    "blocks.0.norm2.weight             4     -       trains  -      all      tp0      0:blocks.0\n"
    "blocks.0.norm2.bias               4     -       trains  -      all      tp0      0:blocks.0\n"
    "blocks.0.mlp.up.weight            3x4   decays  trains  0      0:2,2:3  held     0:blocks.0\n"
    "blocks.0.mlp.up.bias              3     -       trains  0      0:2,2:3  held     0:blocks.0\n"
    "blocks.0.mlp.down.weight          4x3   decays  trains  1      0:2,2:3  held     0:blocks.0\n"
    "blocks.0.mlp.down.bias            4     -       trains  -      all      tp0      0:blocks.0\n"
    "final_norm.weight                 4     -       trains  -      all      tp0      1:head\n"
    "final_norm.bias                   4     -       trains  -      all      tp0      1:head\n"
    "unused.0                          0     -       trains  -      all      tp0      0:none\n";

Layout small_layout() {
  const Settings settings = {"layers=1", "hidden=4",   "heads=2",  "kv_heads=1",    "mlp_hidden=3",
                             "vocab=5",  "sequence=3", "unused=0", "frozen=*norm1*"};
  return layout(workload::load("tiny", settings), parse_strategy("pp2 tp2"));
}

/// The finding about the table with its first `from` replaced.
std::string refusal(const std::string& from, const std::string& to) {
  std::string text = small;
  text.replace(text.find(from), from.size(), to);
  try {
    parse_layout(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LayoutText, IsATable) { EXPECT_EQ(print(small_layout()), small); }

TEST(LayoutText, ParsesBack) {
  const Layout parsed = parse_layout(small);
  EXPECT_EQ(parsed, small_layout());
  EXPECT_FALSE(parsed["blocks.0.norm1.bias"].parameter.trainable);
  EXPECT_FALSE(parsed["blocks.0.norm1.bias"].parameter.decays);
  EXPECT_TRUE(parsed["token_embedding.weight"].parameter.decays);
}

TEST(LayoutText, CommentsAndBlankLinesAreSkipped) {
  EXPECT_EQ(parse_layout("# pp2 tp2\n\n   # again\n" + std::string(small) + "\n"), small_layout());
}

TEST(LayoutText, WhatDiffersIsAnotherLayout) {
  for (const auto& [from, to] : {std::pair{"5x4   decays", "5x4   -     "},
                                 {"decays  trains  0      0:3", "decays  frozen  0      0:3"},
                                 {"0:embedding,1:head", "0:embedding"},
                                 {"0:2,0:2  0:2,2:2", "0:2,0:2  0:0,0:2"},
                                 {"stage_layers     0:1 1:1", "stage_layers     0:0 0:1"}}) {
    std::string text = small;
    text.replace(text.find(from), std::string(from).size(), to);
    EXPECT_NE(parse_layout(text), small_layout()) << to;
    EXPECT_EQ(parse_layout(print(parse_layout(text))), parse_layout(text)) << to;
  }
}

TEST(LayoutText, ErrorsOfForm) {
  EXPECT_EQ(refusal("mlp  ", "mlq  "), "layout: line 5, column 1: \"mlq\" where mlp must stand");
  EXPECT_EQ(refusal("0:1 1:2", "0:1 1-2"),
            "layout: line 2, column 22: \"1-2\" is no range: they are written as 0:4, begin to end");
  EXPECT_EQ(refusal("0:1 1:2", "1:0 1:2"),
            "layout: line 2, column 18: \"1:0\" is no range: they are written as 0:4, begin to end");
  EXPECT_EQ(refusal("5x4 ", "5xy "), "layout: line 8, column 37: \"y\" is no size");
  EXPECT_EQ(refusal("decays  trains  0", "decoys  trains  0"),
            "layout: line 8, column 41: \"decoys\" must be decays or -");
  EXPECT_EQ(refusal("trains  0 ", "training  0 "), "layout: line 8, column 49: \"training\" must be trains or frozen");
  EXPECT_EQ(refusal("trains  0 ", "trains  2 "), "layout: line 8, column 57: \"2\" is no dim of 5x4");
  EXPECT_EQ(refusal("held     0:embedding", "0:embedding"), "layout: line 8, column 1: 7 words, but a parameter has 8");
  EXPECT_EQ(refusal("0:embedding", "embedding"),
            "layout: line 8, column 82: \"embedding\" is no site: they are written as 0:embedding");
  EXPECT_EQ(refusal("blocks.0.norm1.bias  ", "blocks.0.norm1.weight"),
            "layout: line 11, column 1: blocks.0.norm1.weight is doubled");
}

TEST(LayoutText, ErrorsOfRangesThatDoNotFit) {
  EXPECT_EQ(refusal("0:1 1:1\nquery", "0:1 2:2\nquery"),
            "layout: line 1, column 1: 2:2 where a range from 1 must stand");
  EXPECT_EQ(refusal("0:2 2:3", "0:2 2:3 3:3"), "layout: line 5, column 1: 3 ranges, but query_heads has 2");
  EXPECT_EQ(refusal("0:1 1:1\nmlp", "0:0 0:1\nmlp"), "accepted");
  EXPECT_EQ(refusal("key_heads        0:1 0:1", "key_heads        0:1 1:1"), "accepted");
  EXPECT_EQ(refusal("0:1 1:1\nmlp", "0:2 2:2\nmlp"),
            "layout: line 4, column 1: not every range lies in that of key_heads");
  EXPECT_EQ(refusal("0:3,3:5", "0:3,3:6"), "layout: line 8, column 64: a range goes beyond 5");
  EXPECT_EQ(refusal("0:3,3:5", "0:3,3:4"), "layout: line 8, column 73: the ranges end at 4, not at 5");
  EXPECT_EQ(refusal("0:3,3:5", "0:3,2:5"), "layout: line 8, column 73: 2:5 where a range from 3 must stand");
  EXPECT_EQ(refusal("0:3,3:5", "0:5    "), "layout: line 8, column 64: 1 ranges, but query_heads has 2");
  EXPECT_EQ(refusal("0:2,0:2  0:2,2:2", "0:1,0:2  0:2,2:2"),
            "layout: line 14, column 73: not every range lies in that which is held");
  EXPECT_EQ(refusal("1:head", "2:head"), "layout: line 8, column 94: stage 2 of 2");
  EXPECT_EQ(refusal("0:embedding,1:head", "1:head,0:embedding"), "layout: line 8, column 89: stages must ascend");
}

TEST(LayoutText, EveryErrorIsReported) {
  EXPECT_EQ(refusal("5x4   decays  trains  0      0:3,3:5  held     0:embedding,1:head",
                    "5x4   d       t       0      0:3,3:x  held     0:embedding,9:head"),
            "layout: line 8, column 41: \"d\" must be decays or -\n"
            "layout: line 8, column 49: \"t\" must be trains or frozen\n"
            "layout: line 8, column 68: \"3:x\" is no range: they are written as 0:4, begin to end\n"
            "layout: line 8, column 94: stage 9 of 2");
  EXPECT_THROW(parse_layout(""), BadInput);
}

}  // namespace
}  // namespace shardproof::plan
