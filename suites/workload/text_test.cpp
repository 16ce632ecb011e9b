// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/text.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace shardproof::workload {
namespace {

TEST(Text, JoinsParts) {
  EXPECT_EQ(joined(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(joined(std::array<std::string_view, 3>{"a", "", "c"}, ", "), "a, , c");
}

TEST(Text, ShortensBetweenCharacters) {
  const std::string sixty(60, 'a');
  EXPECT_EQ(shortened(sixty), sixty);
  EXPECT_EQ(shortened(sixty + "b"), std::string(57, 'a') + "...");
  // A character of two bytes at 56 and 57.
  EXPECT_EQ(shortened(std::string(56, 'a') + "\u00e9" + sixty), std::string(56, 'a') + "...");
}

TEST(Text, PatternMatches) {
  for (const auto& [pattern, name] :
       std::vector<std::pair<const char*, const char*>>{{"", ""},
                                                        {"*", ""},
                                                        {"a", "a"},
                                                        {"*", "blocks.0"},
                                                        {"blocks.*.bias", "blocks.0.norm1.bias"},
                                                        {"*bias", "bias"},
                                                        {"a**b", "ab"},
                                                        {"*ab", "aab"},
                                                        {"*a*b*", "xaybz"},
                                                        {"a*bc*d", "abxbcbcd"}}) {
    EXPECT_TRUE(matches(pattern, name)) << pattern << " " << name;
  }
}

TEST(Text, PatternDoesNotMatch) {
  for (const auto& [pattern, name] : std::vector<std::pair<const char*, const char*>>{{"", "a"},
                                                                                      {"a", ""},
                                                                                      {"a", "ab"},
                                                                                      {"b", "ab"},
                                                                                      {"blocks.1.*", "blocks.11.bias"},
                                                                                      {"*.bias", "bias"},
                                                                                      {"a*b", "abc"},
                                                                                      {"*ab*ab", "xab"}}) {
    EXPECT_FALSE(matches(pattern, name)) << pattern << " " << name;
  }
}

}  // namespace
}  // namespace shardproof::workload
