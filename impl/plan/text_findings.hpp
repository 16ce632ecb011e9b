// SPDX-License-Identifier: Apache-2.0
// What the parsers of plans share: words with their places, and all findings at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::plan {

/// Line and column count from 1, columns in bytes.
struct Word {
  std::string_view text;
  std::size_t line = 1, column = 1;
};

/// The lines of a text; "\n" and "\r\n" end one, at the end of the text too.
std::vector<Word> lines_of(std::string_view text);
/// The parts between spaces and tabs; none of them is empty.
std::vector<Word> words_of(const Word& line);
/// The parts between separators; at least one, any may be empty.
std::vector<Word> split(const Word& word, char separator);
/// Without spaces and tabs at both ends.
Word trimmed(Word word);

/// The whole number from 0 to 2^31 that is the whole of the text.
std::optional<std::int64_t> whole_number(std::string_view text);

class TextFindings {
 public:
  /// `place` begins where the finding is.
  void add(const Word& place, const std::string& text);
  bool empty() const { return text_.empty(); }
  /// Throws BadInput with all of them, one a line: "WHAT: line 2, column 7: ..."; of those after the 100th the number.
  void throw_any(std::string_view what) const;

 private:
  std::vector<std::string> text_;
  std::size_t more_ = 0;
};

}  // namespace shardproof::plan
