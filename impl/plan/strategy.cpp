// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/strategy.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "impl/plan/layout.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/plan/strategy_refusals.hpp"
#include "impl/plan/strategy_table.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "suites/workload/keys.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

struct Word {
  std::string name, value;
  bool has_equals;
};

Word split(const std::string& text) {
  if (const auto equals = text.find('='); equals != std::string::npos)
    return {text.substr(0, equals), text.substr(equals + 1), true};
  const auto end = std::min(text.find_first_of("0123456789*+-."), text.size());
  return {text.substr(0, end), text.substr(end), false};
}

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> items(1);
  for (const char c : text) {
    if (c == ',')
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

template <class T>
bool read_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// A schedule's name for its alias.
std::string without_alias(const std::string& schedule) {
  for (const ScheduleGenerator* generator : schedules())
    if (!generator->alias.empty() && generator->alias == schedule) return std::string(generator->name);
  return schedule;
}

// Reads a value of the table; "" or what it must be.
struct Read {
  const KeyRow& row;
  const std::string& text;

  std::string operator()(std::int64_t& value) const {
    if (read_number(text, value) && value >= 1 && value <= largest_size) return "";
    return fmt::format("{} must be a whole number from 1 to {}", row.name, largest_size);
  }
  std::string operator()(std::string& value) const {
    const auto names = row.names();
    value = text;
    return std::ranges::find(names, value) != names.end() ? "" : unknown(row.name, workload::shortened(text), names);
  }
  std::string operator()(ScheduleSource& value) const {
    value = without_alias(text);
    if (value.is_file()) return value.wrong_path();
    const auto names = row.names();
    if (std::ranges::find(names, value.text()) != names.end()) return "";
    return unknown(row.name, workload::shortened(text), names);
  }
  std::string operator()(std::optional<double>& value) const {
    double number = 0;
    const bool is_number = read_number(text, number) && std::isfinite(number) && number > 0;
    value = number;
    return is_number || text == "off" ? "" : fmt::format("{} must be off or a number above 0", row.name);
  }
  std::string operator()(std::vector<std::int64_t>& values) const {
    values.clear();
    if (text == row.empty) return "";
    for (const std::string& item : list_of(text))
      if (!read_number(item, values.emplace_back()) || values.back() < row.least || values.back() > largest_size)
        return fmt::format("{} must be {} or a list as 3,2,2 of whole numbers from {} to {}", row.name, row.empty,
                           row.least, largest_size);
    return "";
  }
  std::string operator()(std::array<Axis, axis_count>& order) const {
    constexpr std::array axes = {Axis::pp, Axis::dp, Axis::tp};
    const auto items = list_of(text);
    for (std::size_t k = 0; k < axis_count && items.size() == axis_count; ++k) {
      const auto axis = std::ranges::find(axes, items[k], name_of);
      if (axis == axes.end() || std::find(order.begin(), order.begin() + k, *axis) != order.begin() + k) break;
      order[k] = *axis;
      if (k + 1 == axis_count) return "";
    }
    return fmt::format("{} must be a permutation of pp,dp,tp", row.name);
  }
};

class Parser {
 public:
  explicit Parser(std::optional<std::int64_t> ranks) : ranks_(ranks) {}

  Strategy parse(std::string_view text) {
    std::istringstream words{std::string(text)};
    for (std::string word, last; words >> word; last = word) {
      const std::size_t before = findings_.size();
      read(word);
      if (findings_.size() > before && last.starts_with("schedule=file:"))
        findings_.back() += "; the path of schedule=file:PATH is one word";
    }
    if (given_.empty() && findings_.empty()) findings_.push_back("the strategy is empty: one device is \"dp1\"");
    if (findings_.empty()) size();
    if (std::ranges::all_of(strategy_.replicas, [](std::int64_t r) { return r == 1; }) &&
        std::ssize(strategy_.replicas) == strategy_.pp)
      strategy_.replicas.clear();
    if (findings_.empty() && strategy_.chunks == schedule_generator(strategy_.schedule).chunks) strategy_.chunks = 0;
    if (!findings_.empty()) throw BadInput(workload::joined(findings_, "\n"));
    return strategy_;
  }

 private:
  void read(const std::string& word) {
    const auto [name, value, has_equals] = split(word);
    const auto table = strategy_table();
    const auto row = std::ranges::find(table, name, &KeyRow::name);
    if (row == table.end()) {
      std::vector<std::string> names;
      for (const KeyRow& known : table) names.emplace_back(known.name);
      findings_.push_back(unknown("strategy key", workload::shortened(name.empty() ? word : name), names));
      return;
    }
    const bool doubled = std::ranges::find(given_, &*row) != given_.end();
    given_.push_back(&*row);
    if (doubled) {
      findings_.push_back(fmt::format("strategy key \"{}\" is doubled", name));
    } else if (has_equals == row->is_axis) {
      const bool names_values = std::holds_alternative<std::string Strategy::*>(row->member);
      Strategy example{.dp = 2,
                       .pp = 2,
                       .tp = 2,
                       .schedule = schedules().back()->name,
                       .chunks = 2,
                       .microbatches = 2,
                       .layers = {3, 2, 2},
                       .clip = 1};
      example.replicas = {2, 1, 1};
      if (names_values) example.*std::get<std::string Strategy::*>(row->member) = row->names().back();
      complain(word, fmt::format("{} is written as in \"{}\"", name, written(*row, example)));
    } else if (row->is_axis && value == "*") {
      if (takes_rest_ != nullptr) complain(word, fmt::format("{}* takes the rest already", takes_rest_->name));
      takes_rest_ = &*row;
      if (!ranks_) complain(word, "the number of ranks, of which it takes the rest, is not given");
    } else if (const auto wrong = std::visit(
                   [&, &text = value](auto member) {
                     return Read{*row, text}(strategy_.*member);
                   },
                   row->member);
               !wrong.empty()) {
      complain(word, wrong);
    }
  }

  void complain(const std::string& word, const std::string& text) {
    findings_.push_back(fmt::format("\"{}\": {}", workload::shortened(word), text));
  }

  void size() {
    const std::int64_t dp = strategy_.dp, pp = strategy_.pipeline_ranks(), tp = strategy_.tp;
    if (pp > largest_size / tp || dp > largest_size / (pp * tp)) {
      findings_.push_back(fmt::format("dp{} pp{} tp{}: at most {} ranks are possible", dp, pp, tp, largest_size));
    } else if (takes_rest_ != nullptr && takes_rest_->name == "pp" && !strategy_.replicas.empty()) {
      findings_.push_back("pp* with replicas: they say how many stages there are");
    } else if (takes_rest_ != nullptr) {
      take_rest(strategy_, *takes_rest_, *ranks_);
    }
  }

  std::optional<std::int64_t> ranks_;
  Strategy strategy_;
  std::vector<std::string> findings_;
  std::vector<const KeyRow*> given_;
  const KeyRow* takes_rest_ = nullptr;  // an axis
};

}  // namespace

std::int64_t Strategy::pipeline_ranks() const {
  return replicas.empty() ? pp : std::accumulate(replicas.begin(), replicas.end(), std::int64_t{0});
}

Mesh mesh_of(const Strategy& strategy) {
  return {{strategy.pipeline_ranks(), strategy.dp, strategy.tp}, strategy.order};
}

ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t steps) {
  const ScheduleGenerator& generator = schedule_generator(strategy.schedule);
  const bool is_stale = generator.stale != workload::StaleProgram::Rule::none;
  const bool groups = generator.stale == workload::StaleProgram::Rule::double_buffered;
  return {.ranks = strategy.pipeline_ranks(),
          .microbatches = strategy.microbatches * (is_stale ? steps : 1),
          .chunks = strategy.chunks > 0 ? strategy.chunks : std::max<std::int64_t>(generator.chunks, 1),
          .microbatches_per_update = groups ? strategy.microbatches : 0,
          .replicas = strategy.replicas,
          .vertical_sync = strategy.schedule == "pipedream" && strategy.vertical_sync == "on",
          .file = strategy.schedule.file()};
}

Strategy parse_strategy(std::string_view text, std::optional<std::int64_t> ranks) { return Parser(ranks).parse(text); }

std::string print(const Strategy& strategy) {
  std::string text;
  for (const KeyRow& row : strategy_table()) {
    if (is_standard(row, strategy)) continue;
    if (!text.empty()) text += " ";
    text += written(row, strategy);
  }
  return text.empty() ? "dp1" : text;
}

workload::Workload with_program_keys(workload::Workload workload, const Strategy& strategy) {
  const auto names = workload::names_of(workload.optimizer);
  const auto name = std::ranges::find(names, strategy.optimizer);
  if (name != names.end()) workload.optimizer = static_cast<workload::OptimizerKind>(name - names.begin());
  if (strategy.clip) workload.clip = *strategy.clip;
  workload.stale = {};
  workload.stale.rule = schedule_generator(strategy.schedule).stale;
  if (workload.stale && strategy.vertical_sync == "on")
    workload.stale.rule = workload::StaleProgram::Rule::vertical_sync;
  if (workload.stale) workload.stale.replicas = strategy.replicas;
  if (workload.stale)
    for (const Range& layers : stage_layers(workload, strategy)) workload.stale.stage_layers.push_back(layers.size());
  return workload;
}

std::string_view contract(const Strategy& strategy, Track track) {
  if (schedule_generator(strategy.schedule).stale != workload::StaleProgram::Rule::none) return "STALE";
  const bool rounded = track != Track::exact && std::ranges::any_of(strategy_table(), [&](const KeyRow& row) {
                         return row.is_other_algebra && !is_standard(row, strategy);
                       });
  return rounded ? "ROUNDED" : "EXACT";
}

std::vector<StrategyKey> strategy_keys() {
  std::vector<StrategyKey> keys;
  for (const KeyRow& row : strategy_table())
    keys.push_back({std::string(row.name), legal_values(row), written(row, Strategy{}), std::string(row.meaning),
                    row.kind == KeyKind::program});
  return keys;
}

}  // namespace shardproof::plan
