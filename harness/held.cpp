// SPDX-License-Identifier: Apache-2.0
#include "harness/held.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "impl/comm/traffic_ledger.hpp"

namespace shardproof::harness {
namespace {

/// "rank3_memory_parameter_peak_bytes" without its rank
std::string_view without_rank(std::string_view name) {
  if (!name.starts_with("rank")) return name;
  const auto end = name.find_first_not_of("0123456789", 4);
  return end != name.npos && end > 4 && name[end] == '_' ? name.substr(end + 1) : name;
}

}  // namespace

std::vector<Held> held(const Record& record, std::string_view start, std::string_view end) {
  std::unordered_map<std::string_view, std::int64_t> forms(record.forms.begin(), record.forms.end());
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<Held> all;
  for (const auto& [name, count] : record.ledgers) {
    const auto bare = without_rank(name);
    if (!bare.starts_with(start) || !bare.ends_with(end)) continue;
    const auto [place, is_new] = places.emplace(bare, all.size());
    if (is_new) all.push_back({.name = std::string(bare), .counted = {}, .forms = {}});
    Held& same = all[place->second];
    same.counted.push_back(count);
    const auto form = forms.find(name);
    if (form == forms.end()) continue;
    same.forms.push_back(form->second);
    same.equal = same.equal && form->second == count;
  }
  return all;
}

TrafficName traffic_name(std::string_view name) {
  name.remove_prefix(std::string_view("traffic_").size());
  for (const std::string_view unit : {"_calls", "_payload_bytes", "_wire_bytes"})
    if (name.ends_with(unit)) {
      name.remove_suffix(unit.size());
      break;
    }
  const auto axis = std::min(name.find('_'), name.size());
  const std::string_view rest = name.substr(std::min(axis + 1, name.size()));
  for (std::size_t k = 0; k <= static_cast<std::size_t>(comm::Kind::barrier); ++k) {
    const auto kind = comm::name_of(static_cast<comm::Kind>(k));
    if (rest.starts_with(kind) && rest.size() > kind.size() && rest[kind.size()] == '_')
      return {std::string(name.substr(0, axis)), std::string(kind), std::string(rest.substr(kind.size() + 1))};
  }
  return {std::string(name.substr(0, axis)), "", std::string(rest)};
}

}  // namespace shardproof::harness
