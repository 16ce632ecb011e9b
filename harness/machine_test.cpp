// SPDX-License-Identifier: Apache-2.0
#include "harness/machine.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "harness/environment.hpp"

namespace shardproof::harness {
namespace {

TEST(Machine, ProcessorsCountOnce) {
  const std::vector<std::string> texts = {R"({"boot": "a", "processors": [0, 1]})",
                                          R"({"boot": "a", "processors": [1, 5]})",
                                          R"({"boot": "b", "processors": [1]})"};
  EXPECT_EQ(processors_of(texts), 4);
  EXPECT_FALSE(share_a_clock(texts));
  EXPECT_TRUE(share_a_clock(std::span(texts).first(2)));
}

TEST(Machine, IsThisOne) {
  const std::vector<std::string> twice = {describe_machine(), describe_machine()};
  EXPECT_EQ(processors_of(twice), environment().cores);
  EXPECT_TRUE(share_a_clock(twice));
}

}  // namespace
}  // namespace shardproof::harness
