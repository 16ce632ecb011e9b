// SPDX-License-Identifier: Apache-2.0
// Seconds of what scripts/nightly.sh does for minutes with libFuzzer: texts that a parser takes, broken at random.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "harness/fuzz/parsers.hpp"

namespace shardproof::harness::fuzz {
namespace {

std::string broken(std::string text, const std::string& other, std::mt19937_64& random) {
  static constexpr std::string_view special("\"\\{}[],:=|*/-+.eE019\n\t\0\x7f\xff\xc3", 25);
  for (std::uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
    const auto at = text.empty() ? 0 : random() % text.size();
    const auto length = text.empty() ? 0 : random() % std::min<std::size_t>(text.size() - at, 16);
    switch (random() % 6) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, 1, special[random() % special.size()]); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text.insert(at, std::to_string(static_cast<std::int64_t>(random()))); break;
      case 4: text.insert(at, other.substr(random() % (other.size() + 1), 16)); break;
      default:
        if (!text.empty()) text[at] = static_cast<char>(random());
    }
  }
  return text;
}

TEST(Fuzz, BrokenTextsAreTakenOrRefused) {
  const auto all = parsers();
  for (std::size_t k = 0; k < all.size(); ++k) {
    SCOPED_TRACE(all[k].name);
    std::mt19937_64 random(k);
    const std::string seed = all[k].seed, other = all[(k + 1) % all.size()].seed;
    for (int n = 0; n < 1500; ++n) {
      const std::string text = broken(seed, other, random);
      ASSERT_NO_THROW(feed(k, text)) << text;
    }
  }
}

TEST(Fuzz, HugeDepthAndLengthAreRefused) {
  for (std::size_t k = 0; k < parsers().size(); ++k) {
    ASSERT_NO_THROW(feed(k, ""));
    ASSERT_NO_THROW(feed(k, std::string(100000, '[')));
    ASSERT_NO_THROW(feed(k, std::string(100000, '9')));
    ASSERT_NO_THROW(feed(k, std::string(100000, '\0')));
  }
}

}  // namespace
}  // namespace shardproof::harness::fuzz
