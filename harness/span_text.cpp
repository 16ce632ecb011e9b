// SPDX-License-Identifier: Apache-2.0
#include "harness/span_text.hpp"

#include <bit>
#include <map>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

namespace shardproof::harness {
namespace {

using Json = nlohmann::ordered_json;

/// Each text once; spans hold its index.
class Table {
 public:
  std::size_t index(std::string_view text) {
    const auto [found, is_new] = indices_.try_emplace(std::string(text), indices_.size());
    if (is_new) texts_.push_back(found->first);
    return found->second;
  }
  Json json() const { return texts_; }

 private:
  std::map<std::string, std::size_t> indices_;
  std::vector<std::string> texts_;
};

/// Of a rank's threads it matters which spans have the same one, not which it is.
static_assert(sizeof(std::thread::id) == sizeof(std::uint64_t));
std::uint64_t number_of(std::thread::id thread) { return std::bit_cast<std::uint64_t>(thread); }

Json json_of(const TimeSpan& span) {
  return {span.start, span.end, span.cpu_start, span.cpu_end, number_of(span.thread)};
}

TimeSpan time_of(const Json& said, std::int64_t offset) {
  TimeSpan span;
  span.start = said.at(0).get<std::int64_t>() + offset;
  span.end = said.at(1).get<std::int64_t>() + offset;
  span.cpu_start = said.at(2), span.cpu_end = said.at(3);
  span.thread = std::bit_cast<std::thread::id>(said.at(4).get<std::uint64_t>());
  return span;
}

}  // namespace

Json json_of(const Spans& spans) {
  Table names;
  Json kernels = Json::array(), exchanges = Json::array(), actions = Json::array(), steps = Json::array();
  for (const auto& s : spans.kernels)
    kernels.push_back({json_of(static_cast<const TimeSpan&>(s)), names.index(s.name)});
  for (const auto& s : spans.exchanges)
    exchanges.push_back({json_of(static_cast<const TimeSpan&>(s)), names.index(s.kind), names.index(s.purpose),
                         names.index(*s.group), s.members, s.place, s.peer, s.number, s.payload_bytes});
  for (const auto& s : spans.actions)
    actions.push_back({json_of(static_cast<const TimeSpan&>(s)), static_cast<int>(s.kind), s.stage, s.microbatch});
  for (const auto& s : spans.steps) steps.push_back({json_of(static_cast<const TimeSpan&>(s)), s.step});
  return {
      {"names", names.json()}, {"kernels", kernels}, {"exchanges", exchanges}, {"actions", actions}, {"steps", steps}};
}

Spans spans_of(const Json& said, std::int64_t offset, std::set<std::string>& names) {
  std::vector<std::string_view> texts;
  std::vector<std::shared_ptr<const std::string>> groups;
  for (const auto& name : said.at("names")) {
    texts.push_back(*names.insert(name.get<std::string>()).first);
    groups.push_back(std::make_shared<const std::string>(texts.back()));
  }
  const auto at = [](const Json& list, std::size_t k) { return list.at(k).get<std::size_t>(); };
  Spans spans;
  for (const auto& s : said.at("kernels")) spans.kernels.push_back({time_of(s.at(0), offset), texts.at(at(s, 1))});
  for (const auto& s : said.at("exchanges"))
    spans.exchanges.push_back({time_of(s.at(0), offset), texts.at(at(s, 1)), texts.at(at(s, 2)), groups.at(at(s, 3)),
                               s.at(4), s.at(5), s.at(6), s.at(7), s.at(8)});
  for (const auto& s : said.at("actions"))
    spans.actions.push_back({time_of(s.at(0), offset), static_cast<char>(s.at(1).get<int>()), s.at(2), s.at(3)});
  for (const auto& s : said.at("steps")) spans.steps.push_back({time_of(s.at(0), offset), s.at(1)});
  return spans;
}

}  // namespace shardproof::harness
