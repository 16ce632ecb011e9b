// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/sha256.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace shardproof {
namespace {

// FIPS 180-4's examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Sha256().finish_hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256().add("abc").finish_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, PiecesAreOneStream) {
  Sha256 first;
  first.add("a");
  Sha256 moved = std::move(first);
  moved.add(std::string_view()).add("bc");
  EXPECT_EQ(moved.finish_hex(), Sha256().add("abc").finish_hex());
  EXPECT_EQ(Sha256().add("abc").finish()[0], 0xba);
}

}  // namespace
}  // namespace shardproof
