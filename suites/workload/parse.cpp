// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/nearest.hpp"
#include "suites/workload/built_in.hpp"
#include "suites/workload/findings.hpp"
#include "suites/workload/hf_config.hpp"
#include "suites/workload/json.hpp"
#include "suites/workload/keys.hpp"
#include "suites/workload/random_workload.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::workload {
namespace {

using Json = nlohmann::ordered_json;
using W = Workload;

constexpr std::string_view hf_prefix = "hf:";
constexpr std::string_view random_prefix = "random:";

/// A value as a message shows it; nested ones are named.
std::string shown(const Json& value) {
  const auto structured = [](const Json& x) { return x.is_structured(); };
  if (value.is_object()) return "an object";
  if (value.is_array() && std::any_of(value.begin(), value.end(), structured)) return "a nested list";
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool read(const Json& json, std::string& to) { return json.is_string() && (to = json.get<std::string>(), true); }
bool read(const Json& json, bool& to) { return json.is_boolean() && (to = json.get<bool>(), true); }
bool read(const Json& json, double& to) { return json.is_number() && (to = json.get<double>(), true); }
bool read(const Json& json, std::uint64_t& to) {
  return json.is_number_unsigned() && (to = json.get<std::uint64_t>(), true);
}
bool read(const Json& json, std::int64_t& to) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>())) return false;
  to = json.get<std::int64_t>();
  return true;
}
template <class T>
bool read(const Json& json, std::vector<T>& to) {
  to.clear();
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [&](const Json& item) { return read(item, to.emplace_back()); });
}
template <class E>
requires std::is_enum_v<E>
bool read(const Json& json, E& to) {
  const auto names = names_of(E{});
  const auto found = json.is_string() ? std::find(names.begin(), names.end(), json.get<std::string>()) : names.end();
  if (found == names.end()) return false;
  to = static_cast<E>(found - names.begin());
  return true;
}

/// The value of a setting as JSON: texts need no quotes, lists no brackets. What is not JSON stays a text, which no
/// number and no list accepts.
struct SettingValue {
  std::string_view text;

  Json json(const std::string& source) const {
    std::vector<DoubledKey> doubled;  // in an object, which no key takes
    try {
      return parse_json(source, "", doubled);
    } catch (const BadInput&) {
      return text;
    }
  }
  template <class T>
  Json operator()(T W::*) const {
    return std::is_same_v<T, std::string> || std::is_enum_v<T> ? Json(text) : json(std::string(text));
  }
  Json operator()(std::vector<std::int64_t> W::*) const {
    return json(text.starts_with('[') ? std::string(text) : fmt::format("[{}]", text));
  }
  Json operator()(std::vector<std::string> W::*) const {
    if (text.starts_with('[')) return json(std::string(text));
    Json list = Json::array();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      list.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return list;
  }
};

/// Collects everything that is wrong, then reports it at once.
class Reader {
 public:
  Reader(std::string_view origin, std::string_view name) : origin_(origin) { workload_.name = name; }

  void file(std::string_view text) {
    std::vector<DoubledKey> doubled;
    const Json json = parse_json(text, origin_, doubled);
    if (!json.is_object())
      throw BadInput(fmt::format("{}: a workload is one JSON object, not {}", origin_, shown(json)));
    for (const auto& [key, value] : json.items()) {
      const auto again = std::count_if(doubled.begin(), doubled.end(),
                                       [&, &name = key](const DoubledKey& d) { return d.depth == 1 && d.key == name; });
      if (again > 0) error(origin_, fmt::format("{} is given {} times", shortened(key), again + 1), key);
      set(origin_, key, [&given = value](const Key&) { return given; });
    }
  }

  void settings(std::span<const std::string> settings) {
    std::vector<std::string_view> seen;
    for (const std::string& setting : settings) {
      const std::string_view view = setting;
      const std::size_t equals = view.find('=');
      if (equals == view.npos) {
        error("setting", fmt::format("\"{}\" is not key=value", setting), "");
        continue;
      }
      const std::string_view name = view.substr(0, equals);
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        error("setting", fmt::format("{} is given twice", name), name);
      }
      seen.push_back(name);
      set("setting", name,
          [&](const Key& key) { return std::visit(SettingValue{view.substr(equals + 1)}, key.member); });
    }
  }

  Workload finish() {
    Workload& w = workload_;
    // An illegal size is found where it was given, not in what is made from it.
    const auto legal_or_1 = [](std::string_view key, std::int64_t size) {
      return find_key(key)->range.contains(static_cast<double>(size)) ? size : 1;
    };
    if (w.kv_heads == 0) w.kv_heads = legal_or_1("heads", w.heads);
    if (w.mlp_hidden == 0) w.mlp_hidden = 4 * legal_or_1("hidden", w.hidden);
    for (const Finding& finding : examine(w)) {
      const auto bad = [&](std::string_view key) { return std::find(bad_.begin(), bad_.end(), key) != bad_.end(); };
      if (std::none_of(finding.keys.begin(), finding.keys.end(), bad)) error(origin_, finding.text, "");
    }
    if (!errors_.empty()) throw BadInput(joined(errors_, "\n"));
    return std::move(workload_);
  }

 private:
  void error(std::string_view origin, std::string_view text, std::string_view key) {
    errors_.push_back(fmt::format("{}: {}", origin, text));
    if (!key.empty()) bad_.emplace_back(key);
  }

  template <class ValueOf>
  void set(std::string_view origin, std::string_view name, const ValueOf& value_of) {
    const Key* key = find_key(name);
    if (key == nullptr) {
      std::vector<std::string> names;
      for (const Key& known : key_table()) names.emplace_back(known.name);
      error(origin, unknown("key", shortened(std::string(name)), names), "");
      return;
    }
    const Json json = value_of(*key);
    if (std::visit([&](auto member) { return read(json, workload_.*member); }, key->member)) return;
    error(origin, fmt::format("{} is {}; legal: {}", name, shown(json), legal_values(*key)), name);
  }

  std::string_view origin_;
  Workload workload_;
  std::vector<std::string> errors_;
  std::vector<std::string> bad_;  // keys whose value is not known: findings about them would mislead
};

Workload parse_as(std::string_view name, std::string_view text, std::string_view origin,
                  std::span<const std::string> settings) {
  Reader reader(origin, name);
  reader.file(text);
  reader.settings(settings);
  return reader.finish();
}

/// "random:SEED:INDEX".
Workload random_by_name(std::string_view name) {
  const char* const end = name.data() + name.size();
  std::uint64_t seed = 0;
  std::int64_t index = 0;
  const auto first = std::from_chars(name.data() + random_prefix.size(), end, seed);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == ':') {
    const auto second = std::from_chars(first.ptr + 1, end, index);
    if (second.ec == std::errc{} && second.ptr == end && index >= 0) return random_workload(seed, index);
  }
  throw BadInput(fmt::format("workload {}; legal: random:SEED:INDEX, two integers >= 0", shown(Json(name))));
}

}  // namespace

Workload parse(std::string_view json_text, std::string_view origin, std::span<const std::string> settings) {
  return parse_as(Workload{}.name, json_text, origin, settings);
}

Workload load(std::string_view name_or_path, std::span<const std::string> settings) {
  if (name_or_path.starts_with(hf_prefix)) {
    const std::filesystem::path path(name_or_path.substr(hf_prefix.size()));
    const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path("hf");
    return parse_as(folder.filename().string(), workload_of_hf_config(read_file(path, 1 << 20), path.string()),
                    name_or_path, settings);
  }
  if (name_or_path.find('/') != name_or_path.npos || name_or_path.ends_with(".json")) {
    const std::filesystem::path path(name_or_path);
    return parse_as(path.stem().string(), read_file(path, 1 << 20), name_or_path, settings);
  }
  if (name_or_path.starts_with(random_prefix)) {
    return parse_as(name_or_path, print(random_by_name(name_or_path)), name_or_path, settings);
  }
  std::vector<std::string> names;
  for (const BuiltInFile& file : built_in_files()) {
    if (file.name == name_or_path) return parse_as(file.name, file.text, name_or_path, settings);
    names.emplace_back(file.name);
  }
  throw BadInput(unknown("workload", name_or_path, names) + " (a file's path holds a / or ends in .json)");
}

std::vector<Workload> built_in() {
  std::vector<Workload> workloads;
  for (const BuiltInFile& file : built_in_files()) workloads.push_back(parse_as(file.name, file.text, file.name, {}));
  return workloads;
}

}  // namespace shardproof::workload
