// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/philox.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace shardproof {
namespace {

using Words = std::array<std::uint32_t, 4>;

// kat_vectors of Random123 (Salmon et al. 2011), philox4x32 10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr auto ones = 0xffffffffu;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// SHA-256("1/weight") begins 4e9ea56a 1f540aa2: the first eight bytes, little-endian, are the key.
TEST(Philox, KeyIsTheHashOfSeedAndName) {
  const RandomStream stream(1, "weight");
  const std::array<std::uint32_t, 2> key{0x6aa59e4e, 0xa20a541f};
  for (const std::uint64_t element : {std::uint64_t{0}, std::uint64_t{7}, (std::uint64_t{5} << 34) + 6}) {
    const auto block = element / 4;
    const Words counter{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
    EXPECT_EQ(stream.word(element), philox4x32(counter, key)[element % 4]) << element;
  }
}

TEST(Philox, ManyAreAsOneByOne) {
  const RandomStream stream(99, "many");
  const std::uint64_t far = (std::uint64_t{1} << 34) - 5;  // the counter's low word turns over on the way
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, far}) {
    for (const std::size_t count : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u, 64u, 101u, 128u, 131u, 700u}) {
      std::vector<std::uint32_t> words(count);
      stream.words(first, words);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(words[i], stream.word(first + i)) << first << " + " << i;
    }
  }
}

TEST(Philox, SeedAndNameBothMatter) {
  const auto sample = [](std::uint64_t seed, const char* name) { return RandomStream(seed, name).word(0); };
  EXPECT_NE(sample(1, "a"), sample(2, "a"));
  EXPECT_NE(sample(1, "a"), sample(1, "b"));
  EXPECT_NE(sample(1, "1/a"), sample(11, "/a"));
  EXPECT_EQ(sample(1, "a"), sample(1, "a"));
}

TEST(Philox, UniformIsItsWord) {
  const RandomStream stream(3, "uniform");
  double sum = 0;
  constexpr int n = 100000;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = stream.uniform(i);
    ASSERT_EQ(u, stream.word(i) / 4294967296.0);
    sum += u;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 / std::sqrt(12.0 * n));  // five standard errors
}

}  // namespace
}  // namespace shardproof
