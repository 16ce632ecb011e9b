// SPDX-License-Identifier: Apache-2.0
#include "harness/case.hpp"

#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

namespace {

constexpr std::string_view example = "tiny dropout=0.1 | dp1 microbatches=3 | 1 rank | exact | cpu | threads";

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw BadInput(fmt::format("case \"{}\": {}; a case is written as \"{}\"", text, why, example));
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
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
  std::string text = value.workload;
  for (const auto& setting : value.settings) text += " " + setting;
  return fmt::format("{} | {} | {} rank{} | {} | cpu | threads", text, value.strategy, value.ranks,
                     value.ranks == 1 ? "" : "s", name_of(value.track));
}

Case parse_case(std::string_view text) {
  const auto parts = parts_of(text);
  if (parts.size() != 6) refuse(text, fmt::format("{} parts, not 6", parts.size()));
  const auto workload = words_of(parts[0]), ranks = words_of(parts[2]);
  if (workload.empty()) refuse(text, "no workload");
  if (parts[1].empty()) refuse(text, "no strategy");
  Case value;
  value.workload = workload[0];
  value.settings.assign(workload.begin() + 1, workload.end());
  for (const auto& setting : value.settings) {
    if (setting.find('=') == setting.npos) refuse(text, fmt::format("\"{}\" is not KEY=VALUE", setting));
  }
  value.strategy = parts[1];
  const auto count = ranks.size() == 2 ? parse_number<std::int64_t>(ranks[0]) : std::nullopt;
  if (!count || *count < 1 || ranks[1] != (*count == 1 ? "rank" : "ranks")) {
    refuse(text, fmt::format("\"{}\" is no number of ranks", parts[2]));
  }
  value.ranks = *count;
  try {
    value.track = track_named(parts[3]);
  } catch (const BadInput& error) {
    refuse(text, error.what());
  }
  if (parts[4] != "cpu") refuse(text, fmt::format("\"{}\" is no device that this program has (cpu)", parts[4]));
  if (parts[5] != "threads")
    refuse(text, fmt::format("\"{}\" is no transport that this program has (threads)", parts[5]));
  return value;
}

bool selects(std::string_view pattern, std::string_view entry, const Case& value) {
  return workload::matches(pattern, print(value)) || workload::matches(pattern, entry);
}

}  // namespace shardproof::harness
