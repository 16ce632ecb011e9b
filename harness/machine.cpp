// SPDX-License-Identifier: Apache-2.0
#include "harness/machine.hpp"

#include <fstream>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>
#include <sched.h>
#include <unistd.h>

namespace shardproof::harness {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string describe_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char name[256] = {};
  if (boot.empty() && gethostname(name, sizeof name - 1) == 0) boot = name;
  Json processors = Json::array();
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  for (long k = 0; k < (known ? CPU_SETSIZE : sysconf(_SC_NPROCESSORS_ONLN)); ++k)
    if (!known || CPU_ISSET(k, &set)) processors.push_back(k);
  return Json{{"boot", boot}, {"processors", processors}}.dump();
}

std::int64_t processors_of(std::span<const std::string> descriptions) {
  std::set<std::pair<std::string, std::int64_t>> all;
  for (const auto& text : descriptions) {
    const Json said = Json::parse(text);
    for (const auto& processor : said.at("processors")) all.emplace(said.at("boot"), processor);
  }
  return std::ssize(all);
}

bool share_a_clock(std::span<const std::string> descriptions) {
  std::set<std::string> boots;
  for (const auto& text : descriptions) boots.insert(Json::parse(text).at("boot"));
  return boots.size() == 1;
}

}  // namespace shardproof::harness
