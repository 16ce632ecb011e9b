// SPDX-License-Identifier: Apache-2.0
#include "harness/job_options.hpp"

#include <limits>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/json_fields.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

void WorkloadOptions::declare(Options& options, const std::string& track_help) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  options
      .text("--workload", workload, "NAME|FILE",
            "What to train: a built-in name (list --workloads), a JSON file, or hf:FILE, a GPT-2 config.json")
      .track(track, track_help)
      .number("--steps", steps_, 1, most, "Steps to train, as --set steps=N")
      .number("--seed", seed_, 0, most, "As --set seed=N")
      .list("--set", given_, "KEY=VALUE", "Changes a key of the workload (list --keys); may be repeated")
      .bytes("--device-memory", device_memory, "Limit of the device's memory, as 512M or 16G");
}

std::vector<std::string> WorkloadOptions::settings() const {
  std::vector<std::string> all = given_;
  if (steps_) all.push_back(fmt::format("steps={}", *steps_));
  if (seed_) all.push_back(fmt::format("seed={}", *seed_));
  return all;
}

void JobOptions::declare(Options& options) {
  named_.declare(options, fmt::format("What carries the numbers (default: {})", name_of(track_)));
  options.text("--strategy", strategy_, "TEXT", "How it is spread, as 'dp1 microbatches=4' (list --strategies)");
}

TrainingJob JobOptions::job() const {
  if (named_.workload.empty()) throw BadInput("--workload is missing: a name (list --workloads) or a JSON file");
  TrainingJob job{.workload = {}, .track = named_.track.value_or(track_)};
  std::vector<std::string> findings;
  try {
    job.workload = workload::load(named_.workload, named_.settings());
  } catch (const BadInput& error) {
    findings.push_back(error.what());
  }
  try {
    job.strategy = plan::parse_strategy(strategy_);
    require_threads(job.strategy);
    if (findings.empty()) plan::require_legal(job.strategy, job.workload);
  } catch (const BadInput& error) {
    findings.push_back(fmt::format("--strategy: {}", error.what()));
  } catch (const NotSupported& error) {
    if (findings.empty()) throw;
    findings.push_back(fmt::format("--strategy: {}", error.what()));
  }
  throw_findings(findings);
  job.workload = plan::with_program_keys(job.workload, job.strategy);
  if (named_.device_memory) job.device_memory_bytes = *named_.device_memory;
  return job;
}

}  // namespace shardproof::harness
