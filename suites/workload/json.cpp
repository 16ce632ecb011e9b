// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/json.hpp"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"

namespace shardproof::workload {

using Json = nlohmann::ordered_json;

Json parse_json(std::string_view text, std::string_view origin, std::vector<DoubledKey>& doubled) {
  constexpr int deepest = 64;
  std::vector<std::set<std::string>> open;  // keys of the objects that are open
  const auto see = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= deepest)
      throw BadInput(fmt::format("{}: nested more than {} deep", origin, deepest));
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(value.get<std::string>()).second)
      doubled.push_back({depth, value.get<std::string>()});
    return true;
  };
  try {
    return Json::parse(text, see);
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    const std::size_t begin = what.find("] ");
    throw BadInput(fmt::format("{}: not JSON: {}", origin, what.substr(begin == what.npos ? 0 : begin + 2)));
  }
}

}  // namespace shardproof::workload
