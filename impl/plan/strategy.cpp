// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/strategy.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

enum class Kind : std::uint8_t { layout, program };

struct Key {
  const char* name;
  std::int64_t Strategy::*value;
  bool is_axis;  // written NAMEsize
  Kind kind;
  const char* meaning;

  std::int64_t standard() const { return Strategy{}.*value; }
};

constexpr Key table[] = {
    {"dp", &Strategy::dp, true, Kind::layout, "ranks that see different samples"},
    {"microbatches", &Strategy::microbatches, false, Kind::layout, "parts that a rank's samples are accumulated over"},
};

constexpr std::int64_t largest = std::int64_t{1} << 31;

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Key& key : table) names.push_back(key.name);
  return names;
}

std::string written(const Key& key, std::int64_t value) {
  return fmt::format("{}{}{}", key.name, key.is_axis ? "" : "=", value);
}

struct Word {
  std::string name, value;
  bool has_equals;
};

Word split(const std::string& text) {
  if (const auto equals = text.find('='); equals != std::string::npos)
    return {text.substr(0, equals), text.substr(equals + 1), true};
  const auto digits = text.find_last_not_of("0123456789") + 1;
  return {text.substr(0, digits), text.substr(digits), false};
}

// A size or count from 1.
bool parse_size(const std::string& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= largest;
}

}  // namespace

Strategy parse_strategy(std::string_view text) {
  Strategy strategy;
  std::vector<std::string> findings;
  std::vector<const Key*> given;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const auto [name, value, has_equals] = split(word);
    const auto key = std::ranges::find(table, name, &Key::name);
    if (key == std::end(table)) {
      findings.push_back(unknown("strategy key", name, key_names()));
    } else if (std::ranges::find(given, key) != given.end()) {
      findings.push_back(fmt::format("strategy key \"{}\" is doubled", name));
    } else if (has_equals == key->is_axis) {
      findings.push_back(fmt::format("\"{}\": {} is written as in \"{}\"", word, name, written(*key, 2)));
    } else if (!parse_size(value, strategy.*key->value)) {
      findings.push_back(fmt::format("\"{}\": {} must be a whole number from 1 to {}", word, name, largest));
    }
    if (key != std::end(table)) given.push_back(key);
  }
  if (given.empty() && findings.empty()) findings.push_back("the strategy is empty: one device is \"dp1\"");
  if (!findings.empty()) throw BadInput(workload::joined(findings, "\n"));
  if (strategy.dp > 1)
    throw NotSupported(
        fmt::format("dp{0} needs {0} ranks: training on more than one is not built; the nearest legal "
                    "strategy is dp1 microbatches={1}",
                    strategy.dp, std::max(strategy.dp, strategy.microbatches)));
  return strategy;
}

std::string print(const Strategy& strategy) {
  std::string text;
  for (const Key& key : table) {
    const std::int64_t value = strategy.*key.value;
    if (value == key.standard()) continue;
    if (!text.empty()) text += " ";
    text += written(key, value);
  }
  return text.empty() ? "dp1" : text;
}

std::vector<StrategyKey> strategy_keys() {
  std::vector<StrategyKey> keys;
  for (const Key& key : table)
    keys.push_back({key.name, fmt::format("{} ...", written(key, 1)), written(key, key.standard()), key.meaning,
                    key.kind == Kind::program});
  return keys;
}

}  // namespace shardproof::plan
