// SPDX-License-Identifier: Apache-2.0
#include "harness/candidate_map.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view step_mark = "{step}";

/// The text with every `*` replaced.
std::string filled(std::string text, const std::optional<std::string>& star) {
  if (!star) return text;
  for (std::size_t at = 0; (at = text.find('*', at)) != std::string::npos; at += star->size())
    text.replace(at, 1, *star);
  return text;
}

/// What the `*` of the pattern stands for in the name; none where they do not match.
std::optional<std::string> star_of(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - after.size()));
}

class Parser {
 public:
  Parser(std::string_view origin, const std::vector<workload::Parameter>& parameters)
      : origin_(origin), parameters_(parameters) {}

  CandidateMap parse(std::string_view text) {
    const ordered_json object = parse_object(text, origin_);
    Fields fields(object, origin_, findings_);
    if (fields.has("files")) files(fields);
    if (fields.has("tensors"))
      for (const auto& [key, value] : fields.object("tensors").items()) tensor(key, value);
    map_.tensors.merge(plain_map(parameters_).tensors);  // those that it does not name
    overlaps();
    fields.finish();
    throw_findings(findings_);
    return std::move(map_);
  }

 private:
  void report(const std::string& finding) { findings_.push_back(origin_ + ": " + finding); }

  void files(Fields& fields) {
    map_.files = fields.list("files");
    if (map_.files.empty()) fields.report("\"files\" is empty");
    std::set<std::string> names;
    for (const auto& file : map_.files) {
      const auto at = file.find(step_mark);
      if (at == file.npos || file.find(step_mark, at + 1) != file.npos || file.find('/', at) != file.npos)
        fields.report(fmt::format("file \"{}\" must have {{step}} once, in the last part of its path", file));
      if (!names.insert(file).second) fields.report(fmt::format("file \"{}\" is named twice", file));
    }
  }

  void tensor(const std::string& key, const ordered_json& value) {
    const auto stars = std::ranges::count(key, '*');
    if (stars > 1) return report(fmt::format("tensor \"{}\" has {} stars; one is allowed", key, stars));
    const std::size_t before = findings_.size();
    const Recipe recipe = recipe_of(value, fmt::format("{}: tensor \"{}\"", origin_, key));
    bool found = false;
    for (const auto& p : parameters_) {
      std::optional<std::string> star;
      if (stars == 0 ? p.name != key : !(star = star_of(key, p.name))) continue;
      found = true;
      if (!seen_.insert(p.name).second)
        report(fmt::format("\"tensors\" names \"{}\" twice: also by \"{}\"", p.name, key));
      Recipe filled_in = recipe;
      for (Source& source : filled_in.sources) source.name = filled(source.name, star);
      map_.tensors.insert_or_assign(p.name, std::move(filled_in));
    }
    if (stars == 0 && findings_.size() == before)
      for (const Source& source : recipe.sources)
        if (source.name.find('*') != source.name.npos)
          report(fmt::format("tensor \"{}\" has no star, but its \"{}\" does", key, source.name));
    if (found) return;
    std::vector<std::string> names;
    for (const auto& p : parameters_) names.push_back(p.name);
    report(unknown("tensor", key, names));
  }

  Recipe recipe_of(const ordered_json& value, const std::string& place) {
    if (value.is_object() && value.contains("join")) return join_of(value, place);
    std::optional<std::int64_t> shards;
    const Source source = source_of(value, place, &shards);
    if (!shards) return {{source}, 0};
    Recipe recipe{std::vector(map_.files.size(), source), *shards};
    for (std::size_t i = 0; i < recipe.sources.size(); ++i) recipe.sources[i].file = i;
    return recipe;
  }

  Recipe join_of(const ordered_json& value, const std::string& place) {
    Fields fields(value, place, findings_);
    Recipe recipe;
    recipe.dim = fields.integer("along", 0);
    if (fields.has("join"); !value["join"].is_array() || value["join"].empty())
      fields.report("\"join\" must be a list of sources that is not empty");
    else
      for (const auto& part : value["join"]) recipe.sources.push_back(source_of(part, place, nullptr));
    fields.finish();
    return recipe;
  }

  /// `shards`: takes that key's value; nullptr where it may not stand.
  Source source_of(const ordered_json& value, const std::string& place, std::optional<std::int64_t>* shards) {
    if (value.is_string()) return {value.get<std::string>()};
    if (!value.is_object()) {
      findings_.push_back(fmt::format("{}: a name or an object is expected, not {}", place, value.type_name()));
      return {};
    }
    Fields fields(value, place, findings_);
    Source source{fields.text("from")};
    if (fields.has("transpose")) source.transpose = fields.boolean("transpose");
    if (fields.has("dim") || value.contains("range")) source.cut = cut_of(fields, value);
    if (shards != nullptr && fields.has("shards")) *shards = fields.integer("shards", 0);
    if (fields.has("file")) {
      const std::int64_t file = fields.integer("file", 0);
      if (file >= std::ssize(map_.files))
        fields.report(fmt::format("\"file\" is {}, but there are {} files, counted from 0", file, map_.files.size()));
      if (shards != nullptr && *shards) fields.report("\"shards\" takes a part from each file: leave out \"file\"");
      source.file = static_cast<std::size_t>(file);
    }
    fields.finish();
    return source;
  }

  std::optional<Cut> cut_of(Fields& fields, const ordered_json& value) {
    const std::int64_t dim = fields.integer("dim", 0);
    if (!fields.has("range")) {
      fields.report("\"dim\" is of a \"range\", which is missing");
      return std::nullopt;
    }
    const ordered_json& range = value["range"];
    const auto is_index = [](const ordered_json& v) {
      return v.is_number_unsigned() && v.get<std::uint64_t>() < (std::uint64_t{1} << 62);
    };
    if (!range.is_array() || range.size() != 2 || !std::ranges::all_of(range, is_index) || range[0] >= range[1]) {
      fields.report("\"range\" must be [begin, end] with begin < end");
      return std::nullopt;
    }
    return Cut{dim, range[0].get<std::int64_t>(), range[1].get<std::int64_t>()};
  }

  struct Use {
    const Source* source;
    const std::string* tensor;
  };

  /// Two uses have elements in common, unless they are of other files or of ranges of one dim that do not meet.
  static bool overlap(const Source& a, const Source& b) {
    if (a.file && b.file && *a.file != *b.file) return false;
    if (!a.cut || !b.cut) return true;
    const auto dim = [](const Source& s) { return s.transpose ? 1 - s.cut->dim : s.cut->dim; };
    return dim(a) != dim(b) || (a.cut->begin < b.cut->end && b.cut->begin < a.cut->end);
  }

  void overlaps() {
    std::map<std::string, std::vector<Use>> uses;
    for (const auto& [tensor, recipe] : map_.tensors) {
      for (const Source& source : recipe.sources) {
        auto& others = uses[source.name];
        for (const Use& other : others) {
          if (!overlap(source, *other.source)) continue;
          report(fmt::format("the candidate's \"{}\" is used twice: for \"{}\" and for \"{}\"", source.name,
                             *other.tensor, tensor));
          break;
        }
        others.push_back({&source, &tensor});
      }
    }
  }

  std::string origin_;
  const std::vector<workload::Parameter>& parameters_;
  std::vector<std::string> findings_;
  std::set<std::string> seen_;
  CandidateMap map_;
};

}  // namespace

CandidateMap plain_map(const std::vector<workload::Parameter>& parameters) {
  CandidateMap map;
  for (const auto& p : parameters) map.tensors[p.name] = {{{p.name}}, 0};
  return map;
}

CandidateMap parse_candidate_map(std::string_view json_text, std::string_view origin,
                                 const std::vector<workload::Parameter>& parameters) {
  return Parser(origin, parameters).parse(json_text);
}

std::string file_of_step(const std::string& pattern, std::int64_t step) {
  std::string name = pattern;
  return name.replace(name.find(step_mark), step_mark.size(), fmt::format("{:04}", step));
}

}  // namespace shardproof::harness
