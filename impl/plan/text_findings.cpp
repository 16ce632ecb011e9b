// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/text_findings.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

constexpr std::string_view blanks = " \t";

Word part(const Word& word, std::size_t begin, std::size_t end) {
  return {word.text.substr(begin, end - begin), word.line, word.column + begin};
}

}  // namespace

std::vector<Word> lines_of(std::string_view text) {
  std::vector<Word> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, lines.size() + 1, 1});
    begin = end + 1;
  }
  return lines;
}

std::vector<Word> words_of(const Word& line) {
  std::vector<Word> words;
  for (std::size_t begin = line.text.find_first_not_of(blanks); begin != line.text.npos;) {
    const std::size_t end = std::min(line.text.find_first_of(blanks, begin), line.text.size());
    words.push_back(part(line, begin, end));
    begin = line.text.find_first_not_of(blanks, end);
  }
  return words;
}

std::vector<Word> split(const Word& word, char separator) {
  std::vector<Word> parts;
  for (std::size_t begin = 0; begin <= word.text.size();) {
    const std::size_t end = std::min(word.text.find(separator, begin), word.text.size());
    parts.push_back(part(word, begin, end));
    begin = end + 1;
  }
  return parts;
}

Word trimmed(Word word) {
  const std::size_t begin = word.text.find_first_not_of(blanks);
  if (begin == word.text.npos) return part(word, 0, 0);
  return part(word, begin, word.text.find_last_not_of(blanks) + 1);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || text.front() == '-') return std::nullopt;
  return value <= std::int64_t{1} << 31 ? std::optional(value) : std::nullopt;
}

void TextFindings::add(const Word& place, const std::string& text) {
  constexpr std::size_t most = 100;
  if (text_.size() < most)
    text_.push_back(fmt::format("line {}, column {}: {}", place.line, place.column, text));
  else
    ++more_;
}

void TextFindings::throw_any(std::string_view what) const {
  std::string all;
  for (const std::string& text : text_) all += fmt::format("{}{}: {}", all.empty() ? "" : "\n", what, text);
  if (more_ > 0) all += fmt::format("\n{}: {} more findings", what, more_);
  if (!all.empty()) throw BadInput(all);
}

}  // namespace shardproof::plan
