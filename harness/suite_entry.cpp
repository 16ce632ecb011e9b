// SPDX-License-Identifier: Apache-2.0
#include "harness/suite_entry.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/suite_space.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"
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
  EntryReader(const ordered_json& object, const std::string& origin, std::vector<std::string>& findings,
              const std::filesystem::path& folder)
      : object_(object), origin_(origin), findings_(findings), folder_(folder) {}

  Entry read(std::optional<std::uint64_t> seed) {
    const std::vector<std::string> known = {
        "name",  "why",        "workload", "random", "set",   "factors", "strategies", "strategy_factors",
        "cover", "most_ranks", "ranks",    "tracks", "steps", "shows",   "needs",      "expect"};
    refuse_unknown(object_, known, "");
    Entry entry;
    entry.name = text("name");
    if (!entry.name.empty()) origin_ += fmt::format(" ({})", entry.name);
    entry.why = text("why");
    const std::size_t before = findings_.size();
    Space space = read_space(seed);
    space.given = read_strategies();
    entry.pairs = read_cover();
    const auto all = track_names();
    space.tracks = named(texts("tracks", {all.begin(), all.end()}), track_named);
    if (object_.contains("shows")) entry.shows = named(texts("shows", {}), shown_of);
    entry.needs = texts("needs", {});
    const double cases = size_of(space);
    if (cases > static_cast<double>(most) && !entry.pairs)
      report(fmt::format("it makes {:.3g} cases; at most {} are legal", cases, most));
    if (entry.pairs && pairs_of(space) > static_cast<double>(most))
      report(fmt::format("its factors have {:.3g} pairs of levels; at most {} are legal", pairs_of(space), most));
    const bool counted = findings_.size() == before;  // else what the cases would be is not known
    if (counted) make_cases(entry, space);
    read_expect(entry, counted, space.most_ranks);
    if (entry.pairs) entry.space = std::make_shared<const Space>(std::move(space));
    return entry;
  }

 private:
  static constexpr std::uint64_t most = 1'000'000;
  static constexpr std::size_t most_levels = 1000;

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
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
    if (value->is_string()) {
      auto text = value->get<std::string>();
      if (!text.empty() && std::ranges::none_of(text, control)) return text;
    }
    report(fmt::format("\"{}\" must be a text that is not empty and has no control characters", key));
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
    if (value.is_number_integer() && value > 0 && value <= most) return value.get<std::int64_t>();
    report(fmt::format("\"{}\" must be a whole number from 1 to {}, not {}", key, most, value.dump()));
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

  /// Each strategy on each number of ranks, or on those that it needs. None: the factors' own.
  std::vector<GivenStrategy> read_strategies() {
    if (object_.contains("strategy_factors")) {
      for (const char* key : {"strategies", "ranks"}) {
        if (object_.contains(key)) report(fmt::format("\"{}\" and \"strategy_factors\" exclude each other", key));
      }
      return {};
    }
    std::vector<std::int64_t> ranks;
    for (const auto& item : list("ranks", ordered_json::array())) ranks.push_back(positive(item, "ranks"));
    std::vector<GivenStrategy> given;
    for (const auto& strategy : texts("strategies", {"dp1"})) {
      for (const auto n : ranks) given.push_back({strategy, n});
      if (object_.contains("ranks")) continue;
      attempt([&] { given.push_back({strategy, plan::parse_strategy(strategy).ranks()}); });
    }
    return given;
  }

  /// Whether pairs are covered, instead of all combinations made.
  bool read_cover() {
    const auto* cover = find("cover", false);
    if (cover == nullptr) return false;
    if (*cover != "all" && *cover != "pairs")
      report(fmt::format("\"cover\" must be all or pairs, not {}", cover->dump()));
    if (!object_.contains("factors") && !object_.contains("strategy_factors"))
      report("\"cover\" without \"factors\" or \"strategy_factors\" has nothing to cover");
    return *cover == "pairs";
  }

  void make_cases(Entry& entry, const Space& space) {
    Expanded expanded;
    if (!attempt([&] { expanded = expand(space, entry.pairs); })) return;
    entry.covered = expanded.covered, entry.legal = expanded.legal;
    entry.cases = std::move(expanded.cases);
  }

  /// A refusal is a finding; then false.
  bool attempt(const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const BadInput& error) {
      report(error.what());
      return false;
    }
  }

  std::vector<std::string> read_workloads(std::optional<std::uint64_t> seed) {
    const auto* random = find("random", false);
    if (random == nullptr) {
      const auto workload = text("workload");
      const bool is_file = workload.find('/') != workload.npos || workload.ends_with(".json");
      return {is_file ? (folder_ / workload).lexically_normal().string() : workload};
    }
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

  /// KEY=VALUE of each value that is one.
  std::vector<std::string> settings(const std::string& key, const ordered_json& values) {
    std::vector<std::string> texts;
    for (const auto& value : values) {
      if (is_setting_value(value))
        texts.push_back(fmt::format("{}={}", key, setting_value(value)));
      else
        report(fmt::format("\"{}\": {} is no value of a setting (no space, no '|', no nesting)", key, value.dump()));
    }
    return texts;
  }

  /// The object of a key, or an empty one.
  ordered_json object(const std::string& key, const char* what) {
    const auto* value = find(key, false);
    if (value == nullptr) return ordered_json::object();
    if (value->is_object()) return *value;
    report(fmt::format("\"{}\" must be an object of {}", key, what));
    return ordered_json::object();
  }

  bool is_list_of_levels(const std::string& key, const ordered_json& values) {
    if (values.is_array() && !values.empty() && values.size() <= most_levels) return true;
    report(fmt::format("factor \"{}\" must be a list that is not empty, of at most {}", key, most_levels));
    return false;
  }

  Space read_space(std::optional<std::uint64_t> seed) {
    Space space;
    space.workloads = read_workloads(seed);
    const auto fixed = object("set", "settings");
    for (const auto& [key, value] : fixed.items()) {
      for (auto& setting : settings(key, ordered_json::array({value}))) space.fixed.push_back(std::move(setting));
    }
    const auto factors = object("factors", "lists of settings' values");
    for (const auto& [key, values] : factors.items()) {
      if (fixed.contains(key)) report(fmt::format("\"{}\" is set and is a factor too", key));
      if (is_list_of_levels(key, values)) space.settings.push_back(settings(key, values));
    }
    const auto keys = object("strategy_factors", "lists of a strategy key's values");
    for (const auto& [key, values] : keys.items()) {
      if (!is_list_of_levels(key, values)) continue;
      std::vector<std::string> levels;
      for (const auto& value : values) {
        levels.push_back(setting_value(value));
        if (!is_setting_value(value))
          report(fmt::format("factor \"{}\": {} is no value of a strategy's key (no space, no '|', no nesting)", key,
                             value.dump()));
      }
      attempt([&, &name = key] { space.strategy.push_back(strategy_factor(name, levels)); });
    }
    if (const auto* ranks = find("most_ranks", false)) {
      space.most_ranks = positive(*ranks, "most_ranks");
      if (space.strategy.empty()) report("\"most_ranks\" belongs to \"strategy_factors\"");
    }
    if (const auto* steps = find("steps", false)) space.steps = fmt::format("steps={}", positive(*steps, "steps"));
    return space;
  }

  /// `counted`: against the cases.
  void read_expect(Entry& entry, bool counted, std::int64_t most_ranks) {
    const auto* expect = find("expect", false);
    if (expect == nullptr) {
      const auto cases = counted ? fmt::format(": it makes {0}, as {{\"pass\": {1}}} where none is refused",
                                               harness::counted(entry.cases.size(), "case"), entry.cases.size())
                                 : "";
      return report("\"expect\" is missing" + cases);
    }
    if (!expect->is_object()) return report("\"expect\" must be an object with pass, unsupported or both");
    refuse_unknown(*expect, {"pass", "unsupported"}, "in \"expect\": ");
    for (const auto& [key, value] : expect->items()) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
        return report(fmt::format("\"{}\" must be a whole number from 0 to {}", key, most));
    }
    entry.pass = expect->value("pass", std::int64_t{0});
    entry.unsupported = expect->value("unsupported", std::int64_t{0});
    if (counted && entry.pass + entry.unsupported != std::ssize(entry.cases)) {
      report(fmt::format(
          "{} passes and {} unsupported are expected, but it makes {}{}", entry.pass, entry.unsupported,
          harness::counted(entry.cases.size(), "case"),
          object_.contains("strategy_factors") ? fmt::format(" of at most {} ranks (most_ranks)", most_ranks) : ""));
    }
  }

  const ordered_json& object_;
  std::string origin_;
  std::vector<std::string>& findings_;
  const std::filesystem::path& folder_;
};

}  // namespace

Entry read_entry(const ordered_json& object, const std::string& origin, std::vector<std::string>& findings,
                 std::optional<std::uint64_t> seed, const std::filesystem::path& folder) {
  return EntryReader(object, origin, findings, folder).read(seed);
}

}  // namespace shardproof::harness
