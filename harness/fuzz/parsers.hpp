// SPDX-License-Identifier: Apache-2.0
// Every reader of text or files that users write, behind one door for fuzzing.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace shardproof::harness::fuzz {

struct Parser {
  const char* name;
  void (*parse)(std::string_view);  ///< throws what the reader throws
  std::string seed;                 ///< a text that it takes, or nearly
};

std::array<Parser, 10> parsers();

/// Gives the text to parser `which` (modulo their number) and returns when it took or refused it as BadInput or
/// NotSupported; any other exception leaves.
void feed(std::size_t which, std::string_view text);

}  // namespace shardproof::harness::fuzz
