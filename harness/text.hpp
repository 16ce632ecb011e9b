// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::harness {

/// The number that is the whole of text; none for anything else.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The word as a POSIX shell reads it back.
std::string shell_quoted(std::string_view word);

/// "1 step", "2 steps"
template <class Count>
std::string counted(Count count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// The text with `?` for control characters other than line ends and tabs, and for bytes that are no UTF-8: what a file
/// holds must not reach a terminal.
std::string printable(std::string_view text);

/// Writes the text at once. What fails is left to ferror(): a run is worth more than what is said of it.
void say(std::FILE* stream, std::string_view text) noexcept;

/// Rows with columns padded to equal width, two spaces between, no space at line ends.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace shardproof::harness
