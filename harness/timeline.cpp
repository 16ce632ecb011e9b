// SPDX-License-Identifier: Apache-2.0
#include "harness/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace {

using nlohmann::json;

template <class T>
T value_or(const json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) return found->get<std::string>();
  } else if (found->is_number()) {
    return found->get<T>();
  }
  return otherwise;
}

/// Events are taken one by one as they are parsed, so that a trace never stands in memory as JSON.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  bool take(int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key) in_events_ = parsed == "traceEvents";
    if (depth != 2 || event != json::parse_event_t::object_end || !in_events_) return true;
    add(parsed);
    return false;
  }

  Timeline finish() && {
    Timeline timeline;
    for (auto& [place, spans] : lanes_) {
      std::ranges::stable_sort(spans, {}, &TimelineSpan::start);
      const auto named = names_.find(place);
      timeline.ranks[place.first][named == names_.end() ? fmt::format("lane {}", place.second) : named->second] =
          std::move(spans);
    }
    if (timeline.ranks.empty()) throw BadInput(path_ + ": there is no event in it that has a duration");
    return timeline;
  }

 private:
  void add(const json& event) {
    const auto phase = value_or<std::string>(event, "ph", "");
    const std::pair place(value_or<std::int64_t>(event, "pid", 0), value_or<std::int64_t>(event, "tid", 0));
    const auto name = value_or<std::string>(event, "name", "");
    if (phase == "M" && name == "thread_name" && event.contains("args") && event["args"].is_object())
      names_[place] = value_or<std::string>(event["args"], "name", "");
    if (phase != "X") return;
    const double start = value_or<double>(event, "ts", std::nan("")),
                 duration = value_or<double>(event, "dur", std::nan(""));
    if (!std::isfinite(start) || !std::isfinite(duration) || duration < 0)
      throw BadInput(fmt::format("{}: \"ts\" and \"dur\" of an event named \"{}\" must be numbers, \"dur\" not below 0",
                                 path_, name));
    lanes_[place].push_back({name, start, start + duration});
  }

  std::string path_;
  bool in_events_ = false;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<TimelineSpan>> lanes_;
};

}  // namespace

Timeline read_timeline(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  Reader reader(path.string());
  try {
    const json whole = json::parse(
        text, [&](int depth, json::parse_event_t event, json& parsed) { return reader.take(depth, event, parsed); });
    if (!whole.is_object() || !whole.contains("traceEvents") || !whole["traceEvents"].is_array())
      throw BadInput(path.string() + ": it is no trace: the list \"traceEvents\" is missing");
  } catch (const json::exception& error) {
    throw BadInput(fmt::format("{}: {}", path.string(), error.what()));
  }
  return std::move(reader).finish();
}

}  // namespace shardproof::harness
