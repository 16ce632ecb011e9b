// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"

namespace shardproof::harness {

extern const Command env_command;

namespace {

ExitCode run(std::span<const std::string> args) {
  bool json = false;
  Options options(env_command);
  options.flag("--json", json, "Print one JSON object, as records hold it");
  if (!options.parse(args)) return ExitCode::pass;

  const Environment found = environment();
  if (json) {
    fmt::print("{}\n", to_json(found));
    return ExitCode::pass;
  }
  std::vector<std::vector<std::string>> rows = {
      {"host", found.host},
      {"system", found.system},
      {"processor", found.processor},
      {"cores", std::to_string(found.cores)},
      {"memory", print_bytes(found.memory_bytes)},
      {"compiler", found.compiler},
      {"flags", found.flags},
      {"preset", found.preset},
      {"version", found.version},
      {"commit", found.commit + (found.dirty ? " (changed)" : "")},
  };
  for (const auto& [name, version] : found.libraries) rows.push_back({name, version});
  for (const auto& [name, value] : found.variables) rows.push_back({"$" + name, value});
  fmt::print("{}", table(rows));
  return ExitCode::pass;
}

}  // namespace

const Command env_command = {"env", "What a run on this machine would be made by: processor, libraries, build",
                             "shardproof env --json", run};

}  // namespace shardproof::harness
