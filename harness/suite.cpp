// SPDX-License-Identifier: Apache-2.0
#include "harness/suite.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/suite_files.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {

namespace {

using nlohmann::ordered_json;

/// A value as a setting has it: texts bare, lists with commas between.
std::string setting_value(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array() || value.empty()) return value.dump();
  std::string text;
  for (const auto& item : value) text += (text.empty() ? "" : ",") + setting_value(item);
  return text;
}

bool is_setting_value(const ordered_json& value) {
  const auto plain = [](const ordered_json& v) { return v.is_primitive() && !v.is_null(); };
  if (value.is_array() ? !std::all_of(value.begin(), value.end(), plain) : !plain(value)) return false;
  return setting_value(value).find_first_of(" \t\n|") == std::string::npos;
}

/// Reads one entry; what is wrong with it goes to findings.
class EntryReader {
 public:
  EntryReader(const ordered_json& object, const std::string& origin, std::vector<std::string>& findings)
      : object_(object), origin_(origin), findings_(findings) {}

  Entry read(std::optional<std::uint64_t> seed) {
    const std::vector<std::string> known = {"name",       "why",   "workload", "random", "set",   "factors",
                                            "strategies", "ranks", "tracks",   "steps",  "shows", "expect"};
    refuse_unknown(object_, known, "");
    Entry entry;
    entry.name = text("name");
    if (!entry.name.empty()) origin_ += fmt::format(" ({})", entry.name);
    entry.why = text("why");
    const auto workloads = read_workloads(seed);
    const auto settings = read_settings();
    const auto strategies = texts("strategies", {"dp1"});
    std::vector<std::int64_t> ranks;
    for (const auto& item : list("ranks", ordered_json::array({1}))) ranks.push_back(positive(item, "ranks"));
    const auto all = track_names();
    const auto tracks = named(texts("tracks", {all.begin(), all.end()}), track_named);
    if (object_.contains("shows")) entry.shows = named(texts("shows", {}), shown_of);
    for (const auto& w : workloads) {
      for (const auto& s : settings) {
        for (const auto& strategy : strategies) {
          for (const auto rank : ranks) {
            for (const auto t : tracks) entry.cases.push_back({w, s, strategy, rank, t});
          }
        }
      }
    }
    read_expect(entry);
    return entry;
  }

 private:
  void report(const std::string& finding) { findings_.push_back(origin_ + ": " + finding); }

  void refuse_unknown(const ordered_json& object, const std::vector<std::string>& known, const std::string& inside) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known, key) == known.end()) report(inside + unknown("key", key, known));
    }
  }

  const ordered_json* find(const std::string& key, bool required) {
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    if (required) report(fmt::format("\"{}\" is missing", key));
    return nullptr;
  }

  std::string text(const std::string& key) {
    const auto* value = find(key, true);
    if (value == nullptr) return "";
    if (value->is_string() && !value->get<std::string>().empty()) return value->get<std::string>();
    report(fmt::format("\"{}\" must be a text that is not empty", key));
    return "";
  }

  ordered_json list(const std::string& key, const ordered_json& standard) {
    const auto* value = find(key, false);
    if (value == nullptr) return standard;
    if (value->is_array() && !value->empty()) return *value;
    report(fmt::format("\"{}\" must be a list that is not empty", key));
    return ordered_json::array();
  }

  std::vector<std::string> texts(const std::string& key, const std::vector<std::string>& standard) {
    std::vector<std::string> result;
    for (const auto& item : list(key, standard)) {
      if (item.is_string())
        result.push_back(item.get<std::string>());
      else
        report(fmt::format("\"{}\" must hold texts, not {}", key, item.dump()));
    }
    return result;
  }

  std::int64_t positive(const ordered_json& value, const std::string& key) {
    if (value.is_number_integer() && value > 0 && value <= 1'000'000) return value.get<std::int64_t>();
    report(fmt::format("\"{}\" must be a whole number from 1 to 1000000, not {}", key, value.dump()));
    return 1;
  }

  /// What `value_of` makes of each text; its refusals are findings.
  template <class T>
  std::vector<T> named(const std::vector<std::string>& names, T (*value_of)(std::string_view)) {
    std::vector<T> result;
    for (const auto& name : names) {
      try {
        result.push_back(value_of(name));
      } catch (const BadInput& error) {
        report(error.what());
      }
    }
    return result;
  }

  std::vector<std::string> read_workloads(std::optional<std::uint64_t> seed) {
    const auto* random = find("random", false);
    if (random == nullptr) return {text("workload")};
    if (object_.contains("workload")) report("\"workload\" and \"random\" exclude each other");
    if (!random->is_object()) {
      report("\"random\" must be an object with count and seed");
      return {};
    }
    refuse_unknown(*random, {"count", "seed"}, "in \"random\": ");
    const auto count = positive(random->value("count", ordered_json()), "count");
    const auto own = random->value("seed", ordered_json());
    if (!own.is_number_unsigned()) report("\"seed\" must be a whole number from 0");
    std::vector<std::string> names;
    const auto used = seed.value_or(own.is_number_unsigned() ? own.get<std::uint64_t>() : 0);
    for (std::int64_t k = 0; k < count; ++k) names.push_back(fmt::format("random:{}:{}", used, k));
    return names;
  }

  void add_setting(std::vector<std::string>& settings, const std::string& key, const ordered_json& value) {
    if (is_setting_value(value))
      settings.push_back(fmt::format("{}={}", key, setting_value(value)));
    else
      report(fmt::format("\"{}\": {} is no value of a setting (no space, no '|', no nesting)", key, value.dump()));
  }

  /// Every combination of the factors' values, each with what is set for all.
  std::vector<std::vector<std::string>> read_settings() {
    std::vector<std::vector<std::string>> combinations(1);
    const auto* fixed = find("set", false);
    if (fixed != nullptr && !fixed->is_object()) {
      report("\"set\" must be an object of settings");
      fixed = nullptr;
    }
    if (fixed != nullptr) {
      for (const auto& [key, value] : fixed->items()) add_setting(combinations[0], key, value);
    }
    const auto* factors = find("factors", false);
    if (factors != nullptr && !factors->is_object()) {
      report("\"factors\" must be an object of lists of settings' values");
      factors = nullptr;
    }
    if (factors != nullptr) {
      for (const auto& [key, values] : factors->items()) {
        if (fixed != nullptr && fixed->contains(key)) report(fmt::format("\"{}\" is set and is a factor too", key));
        if (!values.is_array() || values.empty()) {
          report(fmt::format("factor \"{}\" must be a list that is not empty", key));
          continue;
        }
        std::vector<std::vector<std::string>> more;
        for (const auto& combination : combinations) {
          for (const auto& value : values) add_setting(more.emplace_back(combination), key, value);
        }
        combinations = std::move(more);
      }
    }
    if (const auto* steps = find("steps", false)) {
      const auto setting = fmt::format("steps={}", positive(*steps, "steps"));
      for (auto& combination : combinations) combination.push_back(setting);
    }
    return combinations;
  }

  void read_expect(Entry& entry) {
    const auto* expect = find("expect", true);
    if (expect == nullptr) return;
    if (!expect->is_object()) return report("\"expect\" must be an object with pass, unsupported or both");
    refuse_unknown(*expect, {"pass", "unsupported"}, "in \"expect\": ");
    for (const auto& [key, value] : expect->items()) {
      if (!value.is_number_unsigned()) return report(fmt::format("\"{}\" must be a whole number from 0", key));
    }
    entry.pass = expect->value("pass", std::int64_t{0});
    entry.unsupported = expect->value("unsupported", std::int64_t{0});
    if (entry.pass + entry.unsupported != std::ssize(entry.cases)) {
      report(fmt::format("{} passes and {} unsupported are expected, but it makes {} cases", entry.pass,
                         entry.unsupported, entry.cases.size()));
    }
  }

  const ordered_json& object_;
  std::string origin_;
  std::vector<std::string>& findings_;
};

}  // namespace

Suite parse_suite(std::string_view text, std::string_view origin, std::optional<std::uint64_t> seed) {
  const ordered_json object = parse_object(text, origin);
  std::vector<std::string> findings;
  Fields fields(object, std::string(origin), findings);
  Suite suite;
  suite.why = fields.text("why");
  const auto cases = object.find("cases");
  if (cases == object.end() || !cases->is_array() || cases->empty()) {
    fields.report("\"cases\" must be a list that is not empty");
    throw_findings(findings);
  }
  for (const auto& [key, value] : object.items()) {
    if (key != "why" && key != "cases") fields.report(unknown("key", key, std::vector<std::string>{"why", "cases"}));
  }
  std::map<std::string, std::string> entry_of;  // printed cases
  for (std::size_t k = 0; k < cases->size(); ++k) {
    const auto place = fmt::format("{}: entry {}", origin, k + 1);
    if (!(*cases)[k].is_object()) {
      findings.push_back(place + ": not an object");
      continue;
    }
    Entry entry = EntryReader((*cases)[k], place, findings).read(seed);
    for (const auto& earlier : suite.entries) {
      if (earlier.name == entry.name) findings.push_back(fmt::format("{}: the name {} is taken", place, entry.name));
    }
    for (const auto& value : entry.cases) {
      const auto [there, added] = entry_of.emplace(print(value), entry.name);
      if (!added)
        findings.push_back(fmt::format("{}: \"{}\" is a case of {} already", place, print(value), there->second));
    }
    suite.entries.push_back(std::move(entry));
  }
  throw_findings(findings);
  return suite;
}

Suite load_suite(std::string_view name_or_path, std::optional<std::uint64_t> seed) {
  if (name_or_path.find('/') != name_or_path.npos || name_or_path.ends_with(".json")) {
    const std::filesystem::path path(name_or_path);
    Suite suite = parse_suite(read_file(path, 1 << 24), name_or_path, seed);
    suite.name = path.stem().string();
    return suite;
  }
  const auto files = suite_files();
  const auto file = std::ranges::find(files, name_or_path, &SuiteFile::name);
  if (file == files.end()) {
    throw BadInput(unknown("suite", name_or_path, suite_names()) + " (a file's path holds a / or ends in .json)");
  }
  Suite suite = parse_suite(file->text, file->name, seed);
  suite.name = file->name;
  const std::string origin = fmt::format("results/manifests/{}.json", file->name);
  const ordered_json manifest = parse_object(file->manifest, origin);
  std::vector<std::string> findings;
  Fields fields(manifest, origin, findings);
  std::map<std::string, std::int64_t> counted = {{"entries", std::ssize(suite.entries)}};
  for (const auto& entry : suite.entries) counted["pass"] += entry.pass, counted["unsupported"] += entry.unsupported;
  for (const auto& [key, count] : counted) {
    const auto expected = fields.integer(key, 0);
    if (expected != count) fields.report(fmt::format("{} is {}, but the suite makes {}", key, expected, count));
  }
  fields.finish();
  throw_findings(findings);
  return suite;
}

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const auto& file : suite_files()) names.emplace_back(file.name);
  return names;
}

}  // namespace shardproof::harness
