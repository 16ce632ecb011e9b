// SPDX-License-Identifier: Apache-2.0
#include "harness/suite.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/suite_entry.hpp"
#include "harness/suite_files.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {

using nlohmann::ordered_json;

namespace {

/// "line 3, column 5" of each element of "cases", in a text that is a JSON object.
std::vector<std::string> places_of_entries(std::string_view text) {
  std::vector<std::string> places;
  std::size_t line = 1, begin_of_line = 0, depth = 0;
  std::string_view last;  // text
  bool in_cases = false, awaits = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line, begin_of_line = i + 1;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ':') continue;
    if (in_cases && awaits && depth == 2 && c != ']')
      places.push_back(fmt::format("line {}, column {}", line, i - begin_of_line + 1));
    awaits = depth == 2 && c == ',';
    if (c == '"') {
      const std::size_t begin = ++i;
      for (; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      last = text.substr(begin, i - begin);
    } else if (c == '{' || c == '[') {
      if (++depth == 2) in_cases = c == '[' && last == "cases", awaits = true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return places;
}

}  // namespace

Suite parse_suite(std::string_view text, std::string_view origin, std::optional<std::uint64_t> seed,
                  const std::filesystem::path& folder) {
  const ordered_json object = parse_object(text, origin);
  std::vector<std::string> findings;
  Fields fields(object, std::string(origin), findings);
  Suite suite;
  suite.why = fields.text("why");
  for (const auto& [key, value] : object.items()) {
    if (key != "why" && key != "cases") fields.report(unknown("key", key, std::vector<std::string>{"why", "cases"}));
  }
  const auto cases = object.find("cases");
  if (cases == object.end() || !cases->is_array() || cases->empty()) {
    fields.report("\"cases\" must be a list that is not empty");
    throw_findings(findings);
  }
  const auto places = places_of_entries(text);
  std::map<std::string, std::string> entry_of;  // printed cases
  for (std::size_t k = 0; k < cases->size(); ++k) {
    const auto where = k < places.size() ? places[k] + ": " : "";  // an escaped "cases" is not found
    const auto place = fmt::format("{}: {}entry {}", origin, where, k + 1);
    if (!(*cases)[k].is_object()) {
      findings.push_back(place + ": not an object");
      continue;
    }
    Entry entry = read_entry((*cases)[k], place, findings, seed, folder);
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

Suite read_suite(const std::filesystem::path& path, std::optional<std::uint64_t> seed) {
  const auto folder = std::filesystem::absolute(path).lexically_normal().parent_path();
  Suite suite = parse_suite(read_file(path, 1 << 24), path.string(), seed, folder);
  suite.name = path.stem().string();
  return suite;
}

Suite load_suite(std::string_view name_or_path, std::optional<std::uint64_t> seed) {
  if (name_or_path.find('/') != name_or_path.npos || name_or_path.ends_with(".json"))
    return read_suite(name_or_path, seed);
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
