// SPDX-License-Identifier: Apache-2.0
#include "harness/node.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <nlohmann/json.hpp>

#include "harness/environment.hpp"
#include "impl/comm/flight.hpp"
#include "kernels/core/sha256.hpp"

namespace shardproof::harness {
namespace {

using Json = nlohmann::ordered_json;

/// As the linker or its user set it; "" where there is none.
std::string build_id(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const std::byte*>(object.dlpi_addr + part.p_vaddr);
    const auto* const end = at + part.p_memsz;
    const auto aligned = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto* const name = at + sizeof note;
      const auto* const text = name + aligned(note.n_namesz);
      if (text + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        std::string id;
        for (std::size_t k = 0; k < note.n_descsz; ++k) id += fmt::format("{:02x}", static_cast<unsigned>(text[k]));
        return id;
      }
      at = text + aligned(note.n_descsz);
    }
  }
  return "";
}

/// Of what is mapped and not written: code and constants.
std::string content_hash(const dl_phdr_info& object) {
  Sha256 hash;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && (part.p_flags & PF_W) == 0)
      hash.add(std::span(reinterpret_cast<const std::byte*>(object.dlpi_addr + part.p_vaddr), part.p_memsz));
  }
  return hash.finish_hex();
}

int add_object(dl_phdr_info* object, std::size_t, void* to) {
  auto& alike = *static_cast<std::vector<std::pair<std::string, std::string>>*>(to);
  const std::string name = std::filesystem::path(object->dlpi_name).filename();
  if (name.empty())
    alike.emplace_back("binary", content_hash(*object));
  else if (!name.starts_with("linux-vdso"))  // is the kernel's
    alike.emplace_back(name, build_id(*object));
  return 0;
}

std::string of_ranks(const std::vector<std::int64_t>& processes, const std::string& host) {
  std::vector<Rank> ranks;
  for (const auto process : processes) ranks.push_back(static_cast<Rank>(process));
  return fmt::format("{} {} on host {}", ranks.size() == 1 ? "rank" : "ranks", comm::print_members(ranks, 1000), host);
}

}  // namespace

ProcessIdentity identity() {
  const Environment here = environment();
  ProcessIdentity own{{here.host, here.system, here.processor, here.cores, here.memory_bytes, {}}, {}};
  own.alike = {{"version", here.version}, {"commit", here.commit + (here.dirty ? ", changed" : "")}};
  for (const auto& [name, version] : here.libraries)  // which kernels OpenBLAS takes follows from the processor
    own.alike.emplace_back(name, version.substr(0, version.find("; core ")));
  dl_iterate_phdr(add_object, &own.alike);
  for (const auto& [name, value] : here.variables) own.alike.emplace_back("variable " + name, value);
  return own;
}

std::string to_json(const ProcessIdentity& identity) {
  const Node& node = identity.node;
  return Json{{"host", node.host},   {"system", node.system},       {"processor", node.processor},
              {"cores", node.cores}, {"memory", node.memory_bytes}, {"alike", identity.alike}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ProcessIdentity parse_identity(std::string_view json_text) {
  const Json said = Json::parse(json_text);
  return {{said.at("host"), said.at("system"), said.at("processor"), said.at("cores"), said.at("memory"), {}},
          said.at("alike").get<decltype(ProcessIdentity::alike)>()};
}

std::string to_json(const Node& node) {
  return Json{{"host", node.host},
              {"system", node.system},
              {"processor", node.processor},
              {"cores", node.cores},
              {"memory_bytes", node.memory_bytes},
              {"processes", node.processes}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Node> nodes_of(const std::vector<ProcessIdentity>& processes) {
  std::vector<Node> nodes;
  for (std::size_t k = 0; k < processes.size(); ++k) {
    const Node& own = processes[k].node;
    const auto same = [&own](const Node& node) {
      Node without = node;
      without.processes.clear();
      return without == own;
    };
    auto at = std::ranges::find_if(nodes, same);
    if (at == nodes.end()) at = nodes.insert(nodes.end(), own);
    at->processes.push_back(static_cast<std::int64_t>(k));
  }
  return nodes;
}

std::string differences(const std::vector<ProcessIdentity>& processes) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> values;
  for (const ProcessIdentity& process : processes) {
    values.emplace_back(process.alike.begin(), process.alike.end());
    for (const auto& [name, value] : process.alike)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) {
    const auto value_of = [&](std::size_t k) {
      const auto found = values[k].find(name);
      return found == values[k].end() ? std::string("none") : found->second;
    };
    std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> others;  // by value and host
    for (std::size_t k = 1; k < processes.size(); ++k)
      if (value_of(k) != value_of(0))
        others[{value_of(k), processes[k].node.host}].push_back(static_cast<std::int64_t>(k));
    for (const auto& [key, ranks] : others)
      text += fmt::format("{}{}: {}: {}; {}: {}", text.empty() ? "" : "\n", name, of_ranks({0}, processes[0].node.host),
                          value_of(0), of_ranks(ranks, key.second), key.first);
  }
  return text;
}

}  // namespace shardproof::harness
