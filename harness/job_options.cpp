// SPDX-License-Identifier: Apache-2.0
#include "harness/job_options.hpp"

#include <limits>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/case.hpp"
#include "harness/json_fields.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

void JobOptions::declare(Options& options) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  options.text("--workload", workload_, "NAME|FILE", "What to train: a built-in name (list --workloads) or a JSON file")
      .track(given_track_, fmt::format("What carries the numbers (default: {})", name_of(track_)))
      .text("--strategy", strategy_, "TEXT", "How it is spread, as 'dp1 microbatches=4' (list --strategies)")
      .number("--steps", steps_, 1, most, "Steps to train, as --set steps=N")
      .number("--seed", seed_, 0, most, "As --set seed=N")
      .list("--set", settings_, "KEY=VALUE", "Changes a key of the workload (list --keys); may be repeated")
      .bytes("--device-memory", device_memory_, "Limit of the device's memory, as 512M or 16G");
}

std::vector<std::string> JobOptions::settings() const {
  std::vector<std::string> all = settings_;
  if (steps_) all.push_back(fmt::format("steps={}", *steps_));
  if (seed_) all.push_back(fmt::format("seed={}", *seed_));
  return all;
}

TrainingJob JobOptions::job() const {
  if (workload_.empty()) throw BadInput("--workload is missing: a name (list --workloads) or a JSON file");
  TrainingJob job{.workload = {}, .track = given_track_.value_or(track_)};
  std::vector<std::string> findings;
  try {
    job.workload = workload::load(workload_, settings());
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
  if (device_memory_) job.device_memory_bytes = *device_memory_;
  return job;
}

std::string JobOptions::strategy() const { return plan::print(plan::parse_strategy(strategy_)); }

std::string JobOptions::case_text() const {
  return print(Case{.workload = workload_,
                    .settings = settings(),
                    .strategy = strategy(),
                    .ranks = plan::parse_strategy(strategy_).ranks(),
                    .track = given_track_.value_or(track_)});
}

std::vector<std::string> JobOptions::words() const {
  std::vector<std::string> words = {"--workload", workload_,
                                    "--track",    std::string(name_of(given_track_.value_or(track_))),
                                    "--strategy", strategy()};
  for (const std::string& setting : settings()) words.insert(words.end(), {"--set", setting});
  if (device_memory_) words.insert(words.end(), {"--device-memory", std::to_string(*device_memory_)});
  return words;
}

}  // namespace shardproof::harness
