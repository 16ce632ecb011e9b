// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "impl/plan/schedule_file.hpp"
#include "impl/plan/text_findings.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

constexpr std::string_view letters = "FIWBU";  // in the order of ActionKind
constexpr std::array<std::string_view, 4> rule_names = {"flushed", "stashed", "vertical_sync", "double_buffered"};
constexpr std::int64_t most_ranks = std::int64_t{1} << 20;
constexpr std::string_view digits = "0123456789";
constexpr std::string_view overlapped = "OVERLAP_F_B";
// What PyTorch's files say of messages and sharded parameters; here both follow from the actions.
constexpr std::array<std::string_view, 8> derived = {"SEND_F",  "RECV_F",  "SEND_B",      "RECV_B",
                                                     "UNSHARD", "RESHARD", "REDUCE_GRAD", "NONE"};

class Reader {
 public:
  explicit Reader(Columns& columns) : columns_(columns) {}

  Schedule read(std::string_view text) {
    if (const auto lines = std::ranges::count(text, '\n'); lines > most_ranks)
      throw BadInput(fmt::format("schedule: {} lines: it may have at most {} ranks", lines, most_ranks));
    if (text.starts_with("\xEF\xBB\xBF")) {
      findings_.add({}, "the text begins with a byte order mark: it must begin with an action");
      text.remove_prefix(3);
    }
    for (const Word& line : lines_of(text)) {
      schedule_.ranks.emplace_back();
      columns_.emplace_back();
      for (std::size_t begin = 0; begin < line.text.size();) {  // a line may hold millions
        const std::size_t end = std::min(line.text.find(',', begin), line.text.size());
        const Word word = trimmed({line.text.substr(begin, end - begin), line.line, line.column + begin});
        if (!word.text.empty()) entry(word);
        begin = end + 1;
      }
    }
    if (schedule_.ranks.empty()) findings_.add({}, "there is no rank: each is a line");
    findings_.throw_any("schedule");
    return std::move(schedule_);
  }

 private:
  void entry(const Word& word) {
    if (word.text.front() == '(' && word.text.ends_with(overlapped)) return pair(word);
    const std::size_t end = std::min(word.text.find_first_not_of(digits), word.text.size());
    const std::string_view rest = word.text.substr(end);
    const auto is_derived = [&](std::string_view name) {
      return rest.starts_with(name) && rest.find_first_not_of(digits, name.size()) == rest.npos;
    };
    if (end > 0 && std::ranges::any_of(derived, is_derived)) return;
    action(word, end);
  }

  /// "(0F1;1B0)OVERLAP_F_B"
  void pair(const Word& word) {
    const std::size_t close = word.text.find(')');
    if (close + 1 + overlapped.size() != word.text.size())
      return findings_.add(word, fmt::format("\"{}\" is no pair of actions: they are written as (0F1;1B0){}",
                                             shortened(word), overlapped));
    const std::size_t before = schedule_.ranks.back().size();
    const auto parts = split({word.text.substr(1, close - 1), word.line, word.column + 1}, ';');
    for (const Word& part : parts) {
      const Word one = trimmed(part);
      action(one, std::min(one.text.find_first_not_of(digits), one.text.size()));
    }
    const std::span<const Action> read = std::span(schedule_.ranks.back()).subspan(before);
    const bool is_pair =
        parts.size() == 2 &&
        (read.size() < 2 || (read[0].kind == ActionKind::forward &&
                             (read[1].kind == ActionKind::backward || read[1].kind == ActionKind::backward_input)));
    if (!is_pair)
      findings_.add(word, fmt::format("\"{}\" is no pair: it is of one forward, then one backward", shortened(word)));
  }

  /// `end`: of the stage's digits.
  void action(const Word& word, std::size_t end) {
    if (end == 0 || end == word.text.size())
      return findings_.add(
          word, fmt::format("\"{}\" is no action: they are written as 0F1, stage, kind, microbatch", shortened(word)));
    const std::size_t kind = letters.find(word.text[end]);
    const std::string_view number = word.text.substr(end + 1);
    const std::size_t dot = number.find('.');
    const auto is_number = [](std::string_view s) { return !s.empty() && s.find_first_not_of(digits) == s.npos; };
    if (kind == letters.npos || !is_number(number.substr(0, dot)))
      return findings_.add({word.text, word.line, word.column + end},
                           fmt::format("\"{}\" is no action: its kind must be F, I, W, B or U and be followed by a "
                                       "number",
                                       shortened(word)));
    if (dot != number.npos && !is_number(number.substr(dot + 1)))
      return findings_.add(
          {word.text, word.line, word.column + end + 1 + dot},
          fmt::format("\"{}\" is no action: after the point comes the slice, a number", shortened(word)));
    Action result{.kind = static_cast<ActionKind>(kind)};
    const auto whole = [&](std::string_view text, const char* what, std::size_t at, std::int64_t& value) {
      const auto parsed = whole_number(text);
      if (!parsed)
        findings_.add({word.text, word.line, word.column + at},
                      fmt::format("\"{}\": the {} must be a whole number from 0 to 2147483648", shortened(word), what));
      value = parsed.value_or(0);
      return parsed.has_value();
    };
    if (!whole(word.text.substr(0, end), "stage", 0, result.stage) ||
        !whole(number.substr(0, dot), "microbatch", end + 1, result.microbatch) ||
        (dot != number.npos && !whole(number.substr(dot + 1), "slice", end + dot + 2, result.slice)))
      return;
    if (result.kind == ActionKind::update && result.slice != Action::whole)
      return findings_.add(
          {word.text, word.line, word.column + end + 1 + dot},
          fmt::format("\"{}\" is no action: an update is of a stage, it has no slice", shortened(word)));
    schedule_.ranks.back().push_back(result);
    columns_.back().push_back(static_cast<std::uint32_t>(word.column));
  }

  /// For messages, of a file that may hold anything.
  static std::string shortened(const Word& word) {
    std::string text = workload::shortened(std::string(word.text.substr(0, 200)));
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
    return text;
  }

  Columns& columns_;
  Schedule schedule_;
  TextFindings findings_;
};

}  // namespace

std::string print(WeightRule rule) { return std::string(rule_names[static_cast<std::size_t>(rule)]); }
std::span<const std::string_view> weight_rule_names() { return rule_names; }

WeightRule weight_rule(std::string_view name) {
  const auto found = std::ranges::find(rule_names, name);
  if (found == rule_names.end())
    throw BadInput(unknown("rule for weights", name, std::vector<std::string>(rule_names.begin(), rule_names.end())));
  return static_cast<WeightRule>(found - rule_names.begin());
}

char letter_of(ActionKind kind) { return letters[static_cast<std::size_t>(kind)]; }

std::string print(const Action& action) {
  const std::string text = fmt::format("{}{}{}", action.stage, letter_of(action.kind), action.microbatch);
  return action.slice == Action::whole ? text : fmt::format("{}.{}", text, action.slice);
}

std::string print(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for (std::size_t k = 0; k < actions.size(); ++k) {
      if (k > 0) text += ',';
      text += print(actions[k]);
    }
    text += '\n';
  }
  return text;
}

Schedule parse_schedule(std::string_view text, Columns& columns) { return Reader(columns).read(text); }

Schedule parse_schedule(std::string_view text) {
  Columns columns;
  return parse_schedule(text, columns);
}

std::int64_t ScheduleShape::stages() const {
  if (file) return file->stages;
  return replicas.empty() ? ranks * chunks : std::ssize(replicas);
}

const ScheduleGenerator& schedule_generator(std::string_view name) {
  if (name.starts_with(ScheduleSource::prefix)) return schedule_of_file;
  std::vector<std::string> names;
  for (const ScheduleGenerator* generator : schedules()) {
    if (generator->name == name || (!generator->alias.empty() && generator->alias == name)) return *generator;
    names.emplace_back(generator->name);
    if (!generator->alias.empty()) names.emplace_back(generator->alias);
  }
  throw BadInput(unknown("schedule", name, names));
}

Schedule generate(const ScheduleGenerator& generator, const ScheduleShape& shape) {
  for (const auto& [what, value] : {std::pair{"ranks", shape.ranks},
                                    {"microbatches", shape.microbatches},
                                    {"chunks", shape.chunks},
                                    {"slices", shape.slices}})
    if (value < 1) throw BadInput(fmt::format("{}: {} {}: from 1", generator.name, what, value));
  if (shape.microbatches_per_update < 0)
    throw BadInput(
        fmt::format("{}: microbatches per update {}: from 0", generator.name, shape.microbatches_per_update));
  if (const std::string why = generator.refusal(shape); !why.empty())
    throw NotSupported(fmt::format("{}: {}", generator.name, why));
  return generator.generate(shape);
}

}  // namespace shardproof::plan
