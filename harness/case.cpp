// SPDX-License-Identifier: Apache-2.0
#include "harness/case.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "harness/transport.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

namespace {

constexpr std::string_view example = "tiny dropout=0.1 | dp1 microbatches=3 | 1 rank | exact | cpu | threads";

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw BadInput(fmt::format("case \"{}\": {}; a case is written as \"{}\"", text, why, example));
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// The words of a part, in which quotes are not seen.
std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.front() != '"' && std::ranges::none_of(word, is_blank) &&
                     word.find('|') == std::string::npos;
  if (plain) return word;
  std::string text(1, '"');
  for (const char c : word) {
    if (c == '"' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
  text.push_back('"');
  return text;
}

/// Takes the words up to the first '|' outside quotes from the text.
std::vector<std::string> take_words(std::string_view& text) {
  std::vector<std::string> words;
  std::size_t i = 0;
  while (i < text.size() && text[i] != '|') {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    std::string& word = words.emplace_back();
    if (text[i] != '"') {
      for (; i < text.size() && !is_blank(text[i]) && text[i] != '|'; ++i) word += text[i];
      continue;
    }
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      word += text[i];
    }
    if (i++ == text.size()) refuse(text, "a quote is open");
  }
  text.remove_prefix(i);
  return words;
}

/// Parts between '|', without spaces at their ends and with single ones inside.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('|', begin), text.size());
    parts.push_back(fmt::format("{}", fmt::join(words_of(text.substr(begin, end - begin)), " ")));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::string print(const Case& value) {
  std::string text = quoted(value.workload);
  for (const auto& setting : value.settings) text += " " + quoted(setting);
  return fmt::format("{} | {} | {} rank{} | {} | cpu | {}", text, value.strategy, value.ranks,
                     value.ranks == 1 ? "" : "s", name_of(value.track), transport());
}

std::string listed(const Case& value, std::string_view entry) { return fmt::format("{}  # {}", print(value), entry); }

Case parse_case(std::string_view text) {
  std::string_view rest = text;
  const auto workload = take_words(rest);
  rest = rest.substr(0, rest.find('#'));
  const auto parts = rest.empty() ? std::vector<std::string>() : parts_of(rest.substr(1));
  if (parts.size() != 5) refuse(text, fmt::format("{} parts, not 6", parts.size() + 1));
  const auto ranks = words_of(parts[1]);
  if (workload.empty()) refuse(text, "no workload");
  if (parts[0].empty()) refuse(text, "no strategy");
  Case value;
  value.workload = workload[0];
  value.settings.assign(workload.begin() + 1, workload.end());
  for (const auto& setting : value.settings) {
    if (setting.find('=') == setting.npos) refuse(text, fmt::format("\"{}\" is not KEY=VALUE", setting));
  }
  value.strategy = parts[0];
  const auto count = ranks.size() == 2 ? parse_number<std::int64_t>(ranks[0]) : std::nullopt;
  if (!count || *count < 1 || ranks[1] != (*count == 1 ? "rank" : "ranks")) {
    refuse(text, fmt::format("\"{}\" is no number of ranks", parts[1]));
  }
  value.ranks = *count;
  try {
    value.track = track_named(parts[2]);
  } catch (const BadInput& error) {
    refuse(text, error.what());
  }
  if (parts[3] != "cpu") refuse(text, fmt::format("\"{}\" is no device that this program has (cpu)", parts[3]));
  // Which one it is, is said by how this process was started: a case is the same on each.
  if (parts[4] != "threads" && parts[4] != "mpi")
    refuse(text, fmt::format("\"{}\" is no transport that this program has (threads, mpi)", parts[4]));
  return value;
}

bool selects(std::string_view pattern, std::string_view entry, const Case& value) {
  return workload::matches(pattern, print(value)) || workload::matches(pattern, entry) ||
         workload::matches(pattern, listed(value, entry));
}

}  // namespace shardproof::harness
