// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "impl/plan/text_findings.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

constexpr std::string_view letters = "FIWBU";  // in the order of ActionKind
constexpr std::string_view digits = "0123456789";

std::optional<Action> read_action(const Word& word, TextFindings& findings) {
  const std::string text = workload::shortened(std::string(word.text));
  const std::size_t end = word.text.find_first_not_of(digits);
  if (end == 0 || end == word.text.npos) {
    findings.add(word, fmt::format("\"{}\" is no action: they are written as 0F1, stage, kind, microbatch", text));
    return std::nullopt;
  }
  const std::size_t kind = letters.find(word.text[end]);
  const std::string_view number = word.text.substr(end + 1);
  if (kind == letters.npos || number.empty() || number.find_first_not_of(digits) != number.npos) {
    findings.add(
        {word.text, word.line, word.column + end},
        fmt::format("\"{}\" is no action: its kind must be F, I, W, B or U and be followed by a number", text));
    return std::nullopt;
  }
  const auto stage = whole_number(word.text.substr(0, end)), microbatch = whole_number(number);
  if (!stage || !microbatch) {
    findings.add({word.text, word.line, word.column + (stage ? end + 1 : 0)},
                 fmt::format("\"{}\": {} must be a whole number from 0 to 2147483648", text,
                             stage ? "the microbatch" : "the stage"));
    return std::nullopt;
  }
  return Action{*stage, static_cast<ActionKind>(kind), *microbatch};
}

}  // namespace

char letter_of(ActionKind kind) { return letters[static_cast<std::size_t>(kind)]; }

std::string print(const Action& action) {
  return fmt::format("{}{}{}", action.stage, letter_of(action.kind), action.microbatch);
}

std::string print(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for (std::size_t k = 0; k < actions.size(); ++k) text += fmt::format("{}{}", k == 0 ? "" : ",", print(actions[k]));
    text += '\n';
  }
  return text;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  TextFindings findings;
  for (const Word& line : lines_of(text)) {
    auto& actions = schedule.ranks.emplace_back();
    for (const Word& field : split(line, ',')) {
      const Word word = trimmed(field);
      if (word.text.empty()) continue;
      if (const auto action = read_action(word, findings)) actions.push_back(*action);
    }
  }
  if (schedule.ranks.empty()) findings.add({}, "there is no rank: each is a line");
  findings.throw_any("schedule");
  return schedule;
}

const ScheduleGenerator& schedule_generator(std::string_view name) {
  std::vector<std::string> names;
  for (const ScheduleGenerator* generator : schedules()) {
    if (generator->name == name) return *generator;
    names.emplace_back(generator->name);
  }
  throw BadInput(unknown("schedule", name, names));
}

}  // namespace shardproof::plan
