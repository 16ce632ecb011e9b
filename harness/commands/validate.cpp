// SPDX-License-Identifier: Apache-2.0
#include "harness/validate.hpp"

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/json_fields.hpp"
#include "harness/options.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

extern const Command validate_command;

namespace {

ExitCode run(std::span<const std::string> args) {
  std::string workload, hash;
  std::vector<std::string> paths, settings;
  Options options(validate_command);
  options.words(paths, "PATH", "Workloads and suites (.json), records (.jsonl), folders, tensors (.safetensors)")
      .text("--workload", workload, "NAME|FILE", "Exported tensors must belong to this workload")
      .list("--set", settings, "KEY=VALUE", "Changes a key of that workload; may be repeated");
  if (!options.parse(args)) return ExitCode::pass;
  if (paths.empty()) throw BadInput("nothing to validate: name a file or a folder");
  if (workload.empty() && !settings.empty()) throw BadInput("--set changes the --workload, which is missing");
  if (!workload.empty()) hash = workload::hash(workload::load(workload, settings));

  std::vector<std::string> findings;
  for (const std::string& path : paths) try {
      fmt::print("{}: {}\n", path, validate(path, hash));
    } catch (const BadInput& error) {
      findings.push_back(error.what());
    }
  throw_findings(findings);
  return ExitCode::pass;
}

}  // namespace

const Command validate_command = {"validate",
                                  "Checks files without running anything: workloads, suites, runs, exports, tensors",
                                  "shardproof validate suites/shapes/tiny.json", run};

}  // namespace shardproof::harness
