// SPDX-License-Identifier: Apache-2.0
#include "harness/json_fields.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "suites/workload/json.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

using nlohmann::ordered_json;

ordered_json parse_object(std::string_view text, std::string_view origin) {
  std::vector<workload::DoubledKey> doubled;
  ordered_json object = workload::parse_json(text, origin, doubled);
  if (!object.is_object())
    throw BadInput(fmt::format("{}: a JSON object is expected, not {}", origin, object.type_name()));
  std::vector<std::string> findings;
  for (const auto& [depth, key] : doubled) findings.push_back(fmt::format("{}: key \"{}\" is doubled", origin, key));
  throw_findings(findings);
  return object;
}

Fields::Fields(const ordered_json& object, std::string origin, std::vector<std::string>& findings)
    : object_(object), origin_(std::move(origin)), findings_(findings) {}

void Fields::report(const std::string& finding) { findings_.push_back(origin_ + ": " + finding); }

const ordered_json* Fields::find(const std::string& key) {
  known_.push_back(key);
  const auto found = object_.find(key);
  if (found != object_.end()) return &*found;
  report(fmt::format("\"{}\" is missing", key));
  return nullptr;
}

void Fields::wrong_type(const std::string& key, std::string_view wanted) {
  report(fmt::format("\"{}\" must be {}, not {}", key, wanted, object_.find(key)->type_name()));
}

bool Fields::has(const std::string& key) {
  known_.push_back(key);
  return object_.contains(key);
}

std::string Fields::text(const std::string& key) {
  const ordered_json* value = find(key);
  if (value && value->is_string()) return value->get<std::string>();
  if (value) wrong_type(key, "a string");
  return {};
}

std::string Fields::text_or_null(const std::string& key) {
  const ordered_json* value = find(key);
  if (value && value->is_string()) return value->get<std::string>();
  if (value && !value->is_null()) wrong_type(key, "a string or null");
  return {};
}

std::string Fields::choice(const std::string& key, std::span<const std::string> names) {
  const ordered_json* value = find(key);
  if (value && !value->is_string()) wrong_type(key, "a string");
  if (!value || !value->is_string()) return names.front();
  auto name = value->get<std::string>();
  if (std::ranges::find(names, name) != names.end()) return name;
  report(unknown(key, name, names));
  return names.front();
}

bool Fields::boolean(const std::string& key) {
  const ordered_json* value = find(key);
  if (value && value->is_boolean()) return value->get<bool>();
  if (value) wrong_type(key, "true or false");
  return false;
}

std::int64_t Fields::integer(const std::string& key, std::int64_t minimum) {
  const ordered_json* value = find(key);
  if (!value) return minimum;
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<std::uint64_t>() > most)) {
    wrong_type(key, "a whole number of 64 bits");
    return minimum;
  }
  const auto number = value->get<std::int64_t>();
  if (number >= minimum) return number;
  report(fmt::format("\"{}\" is {}, which is below {}", key, number, minimum));
  return minimum;
}

double Fields::number(const std::string& key) {
  const ordered_json* value = find(key);
  if (value && value->is_number()) return value->get<double>();
  if (value) wrong_type(key, "a number");
  return 0;
}

double Fields::number(const std::string& key, double minimum, double maximum) {
  const ordered_json* value = find(key);
  if (value && !value->is_number()) wrong_type(key, "a number");
  if (!value || !value->is_number()) return minimum;
  const auto number = value->get<double>();
  if (number >= minimum && number <= maximum) return number;
  report(fmt::format("\"{}\" is {:g}: {:g} to {:g} is legal", key, number, minimum, maximum));
  return minimum;
}

std::string Fields::name(const std::string& key) {
  const ordered_json* value = find(key);
  if (value && !value->is_string()) wrong_type(key, "a string");
  if (!value || !value->is_string()) return {};
  auto name = value->get<std::string>();
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  if (!name.empty() && name.size() <= 64 && std::ranges::none_of(name, control)) return name;
  report(fmt::format("\"{}\" must be of 1 to 64 bytes without control characters", key));
  return {};
}

const ordered_json& Fields::object(const std::string& key) {
  static const ordered_json empty = ordered_json::object();
  const ordered_json* value = find(key);
  if (value && value->is_object()) return *value;
  if (value) wrong_type(key, "an object");
  return empty;
}

std::vector<std::string> Fields::list(const std::string& key) {
  const ordered_json* value = find(key);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  const auto is_text = [](const ordered_json& item) { return item.is_string(); };
  if (!value->is_array() || !std::ranges::all_of(*value, is_text))
    wrong_type(key, "a list of texts");
  else
    for (const auto& item : *value) texts.push_back(item.get<std::string>());
  return texts;
}

std::vector<std::pair<std::string, std::string>> Fields::texts(const std::string& key) {
  const ordered_json& members = object(key);
  Fields fields(members, origin_ + ": " + key, findings_);
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, value] : members.items()) texts.emplace_back(name, fields.text(name));
  return texts;
}

void Fields::finish() {
  for (const auto& [key, value] : object_.items())
    if (std::ranges::find(known_, key) == known_.end()) report(unknown("key", key, known_));
}

void throw_findings(const std::vector<std::string>& findings) {
  if (!findings.empty()) throw BadInput(workload::joined(findings, "\n"));
}

}  // namespace shardproof::harness
