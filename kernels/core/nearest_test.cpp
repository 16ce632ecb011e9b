// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/nearest.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace shardproof {
namespace {

const std::vector<std::string> words = {"steps", "sequence", "seed", "samples", "learning_rate"};

TEST(Nearest, FindsOneEdit) {
  EXPECT_EQ(nearest("step", words), "steps");
  EXPECT_EQ(nearest("stepss", words), "steps");
  EXPECT_EQ(nearest("stesp", words), "steps");
  EXPECT_EQ(nearest("seeds", words), "seed");
  EXPECT_EQ(nearest("learning_raet", words), "learning_rate");
}

TEST(Nearest, SwapOfNeighboursIsOneEdit) {
  EXPECT_EQ(nearest("ab", std::vector<std::string>{"bxa", "ba"}), "ba");
  EXPECT_EQ(nearest("ab", std::vector<std::string>{"cd", "ba"}), "ba");
}

TEST(Nearest, TakesTheFirstOfEqual) { EXPECT_EQ(nearest("x", std::vector<std::string>{"a", "b"}), "a"); }

TEST(Nearest, EmptyWordAndNoCandidates) {
  EXPECT_EQ(nearest("", words), "seed");
  EXPECT_EQ(nearest("word", {}), "");
  EXPECT_EQ(unknown("key", "word", {}), "unknown key \"word\"");
}

TEST(Nearest, SaysWhatIsUnknown) {
  EXPECT_EQ(unknown("key", "sed", words), "unknown key \"sed\": did you mean \"seed\"?");
  EXPECT_EQ(unknown("key", "seec", words), "unknown key \"seec\": did you mean \"seed\"?");
}

TEST(Nearest, CaseAndHyphensDoNotCount) {
  EXPECT_EQ(unknown("schedule", "ZB-H1", std::vector<std::string>{"zb_v", "zb_h1", "zb_h2"}),
            "unknown schedule \"ZB-H1\": did you mean \"zb_h1\"?");
}

TEST(Nearest, SaysWhatIsLegalWhereNothingIsNear) {
  EXPECT_EQ(unknown("schedule", "1f1b", std::vector<std::string>{"naive", "gpipe"}),
            "unknown schedule \"1f1b\": legal are naive, gpipe");
  EXPECT_EQ(unknown("key", "axis", std::vector<std::string>(17, "word")), "unknown key \"axis\"");
}

}  // namespace
}  // namespace shardproof
