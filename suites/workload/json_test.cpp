// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"

namespace shardproof::workload {
namespace {

std::string refusal(const std::string& text) {
  std::vector<DoubledKey> doubled;
  try {
    parse_json(text, "f", doubled);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, DepthIsLimited) {
  EXPECT_EQ(refusal(nested(64)), "accepted");
  EXPECT_EQ(refusal(nested(65)), "f: nested more than 64 deep");
  EXPECT_EQ(refusal(std::string(1'000'000, '[')), "f: nested more than 64 deep");
  std::string objects;
  for (int k = 0; k < 100'000; ++k) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects), "f: nested more than 64 deep");
}

TEST(Json, DoubledKeysAreThoseOfOneObject) {
  std::vector<DoubledKey> doubled;
  const auto json = parse_json(R"({"b": {"a": 1, "c": 2}, "a": {"a": 1, "a": 2}, "b": 3, "b": 4})", "f", doubled);
  ASSERT_EQ(doubled.size(), 3u);
  EXPECT_EQ(doubled[0].depth, 2);
  EXPECT_EQ(doubled[0].key, "a");
  EXPECT_EQ(doubled[1].depth, 1);
  EXPECT_EQ(doubled[1].key, "b");
  EXPECT_EQ(json["b"], 4);
  EXPECT_EQ(json.begin().key(), "b");
}

TEST(Json, WhatIsNoneIsSaidWithItsPlace) {
  EXPECT_TRUE(refusal("{\n\"a\": 2,\n}").starts_with("f: not JSON: parse error at line 3, column 1"));
  EXPECT_TRUE(refusal("1e999").starts_with("f: not JSON: number overflow"));
}

}  // namespace
}  // namespace shardproof::workload
