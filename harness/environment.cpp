// SPDX-License-Identifier: Apache-2.0
#include "harness/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include <cblas.h>
#include <dnnl.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness/build_info.hpp"
#include "harness/json_fields.hpp"
#include "harness/text.hpp"
#include "harness/transport.hpp"
#include "impl/comm/mpi.hpp"

namespace shardproof::harness {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::string processor(const std::string& machine) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return machine;
}

std::int64_t usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
}

// The smallest limit from this process's control group up to the root (version 2); the one group that a container
// shows as its root (version 1).
std::int64_t group_memory_limit() {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  const auto lower = [&](const std::filesystem::path& file) {
    if (const auto bytes = parse_number<std::int64_t>(first_line(file))) limit = std::min(limit, *bytes);
  };
  const std::filesystem::path root = "/sys/fs/cgroup";
  if (const std::string group = first_line("/proc/self/cgroup"); group.starts_with("0::/"))
    for (auto folder = std::filesystem::path(group.substr(3)); folder.has_relative_path();
         folder = folder.parent_path())
      lower(root / folder.relative_path() / "memory.max");
  lower(root / "memory.max");
  lower(root / "memory/memory.limit_in_bytes");
  return limit;
}

}  // namespace

Environment environment() {
  Environment found;
  utsname name{};
  uname(&name);
  found.host = name.nodename;
  found.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  found.processor = processor(name.machine);
  found.cores = processors(usable_cores());
  found.memory_bytes = std::min(std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE), group_memory_limit());
  found.compiler = build_info.compiler;
  found.flags = build_info.flags;
  found.preset = build_info.preset;
  found.version = build_info.version;
  found.commit = build_info.commit;
  found.dirty = build_info.dirty;
  const dnnl_version_t* dnn = dnnl_version();
  found.libraries = {
      {"oneDNN", fmt::format("{}.{}.{}", dnn->major, dnn->minor, dnn->patch)},
      {"OpenBLAS", fmt::format("{}; core {}", openblas_get_config(), openblas_get_corename())},
      {"CUDA", build_info.cuda},
      {"MPI", comm::MpiJob::library()},
      {"NCCL", "not built"},
  };
  for (const char* variable : {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA",
                               "DNNL_MAX_CPU_ISA", "LD_PRELOAD", "GLIBC_TUNABLES"})
    if (const char* value = std::getenv(variable)) found.variables.emplace_back(variable, value);
  return found;
}

std::string to_json(const Environment& environment) {
  nlohmann::ordered_json object = {
      {"host", environment.host},
      {"system", environment.system},
      {"processor", environment.processor},
      {"cores", environment.cores},
      {"memory_bytes", environment.memory_bytes},
      {"compiler", environment.compiler},
      {"flags", environment.flags},
      {"preset", environment.preset},
      {"version", environment.version},
      {"commit", environment.commit},
      {"dirty", environment.dirty},
      {"libraries", nlohmann::ordered_json::object()},
      {"variables", nlohmann::ordered_json::object()},
  };
  for (const auto& [name, version] : environment.libraries) object["libraries"][name] = version;
  for (const auto& [name, value] : environment.variables) object["variables"][name] = value;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Environment parse_environment(std::string_view json_text, std::string_view origin) {
  const nlohmann::ordered_json object = parse_object(json_text, origin);
  std::vector<std::string> findings;
  Fields fields(object, std::string(origin), findings);
  Environment parsed;
  parsed.host = fields.text("host");
  parsed.system = fields.text("system");
  parsed.processor = fields.text("processor");
  parsed.cores = fields.integer("cores", 1);
  parsed.memory_bytes = fields.integer("memory_bytes", 1);
  parsed.compiler = fields.text("compiler");
  parsed.flags = fields.text("flags");
  parsed.preset = fields.text("preset");
  parsed.version = fields.text("version");
  parsed.commit = fields.text("commit");
  parsed.dirty = fields.boolean("dirty");
  parsed.libraries = fields.texts("libraries");
  parsed.variables = fields.texts("variables");
  fields.finish();
  throw_findings(findings);
  return parsed;
}

std::string difference(const Environment& a, const Environment& b) {
  const auto differ = [](std::string_view name, const auto& x, const auto& y) {
    return x == y ? std::string() : fmt::format("{} {} and {}", name, x, y);
  };
  for (const std::string& text : {differ("commit", a.commit, b.commit), differ("host", a.host, b.host),
                                  differ("cores", a.cores, b.cores), differ("processor", a.processor, b.processor),
                                  differ("preset", a.preset, b.preset), differ("flags", a.flags, b.flags)})
    if (!text.empty()) return text;
  return "their \"environment\"";
}

}  // namespace shardproof::harness
