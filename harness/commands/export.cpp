// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/export.hpp"
#include "harness/options.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

extern const Command export_command;

namespace {

ExitCode run(std::span<const std::string> args) {
  std::string workload, strategy = "dp1", out;
  std::optional<Track> track;
  std::optional<std::int64_t> steps, seed;
  std::vector<std::string> settings;
  bool overwrite = false, no_yardstick = false;
  Options options(export_command);
  options.text("--workload", workload, "NAME|FILE", "What to train: a built-in name (list --workloads) or a JSON file")
      .track(track, "What carries the numbers (default: f64)")
      .text("--strategy", strategy, "TEXT", "How it is spread, as 'dp1 microbatches=4'")
      .number("--steps", steps, 1, std::numeric_limits<std::int64_t>::max(), "Steps to train, as --set steps=N")
      .number("--seed", seed, 0, std::numeric_limits<std::int64_t>::max(), "As --set seed=N")
      .list("--set", settings, "KEY=VALUE", "Changes a key of the workload (list --keys); may be repeated")
      .text("--out", out, "FOLDER", "A new folder for the files")
      .flag("--overwrite", overwrite, "Replace the folder if it exists")
      .flag("--no-yardstick", no_yardstick, "Leave out yardstick.safetensors, which takes two runs of the oracle");
  if (!options.parse(args)) return ExitCode::pass;
  if (workload.empty()) throw BadInput("--workload is missing: a name (see list --workloads) or a file");
  if (out.empty()) throw BadInput("--out is missing: the folder to write");
  if (steps) settings.push_back(fmt::format("steps={}", *steps));
  if (seed) settings.push_back(fmt::format("seed={}", *seed));

  TrainingJob job{.workload = workload::load(workload, settings), .track = track.value_or(Track::f64)};
  job.microbatches = plan::parse_strategy(strategy).microbatches;
  refuse_too_large(job, nullptr, environment().memory_bytes);
  const std::string digest = export_run(job, workload::Corpus(job.workload), out, overwrite, !no_yardstick);
  fmt::print("{} steps of {} ({}) in {}\ndigest {}\n", job.workload.steps, job.workload.name, name_of(job.track), out, digest);
  return ExitCode::pass;
}

}  // namespace

const Command export_command = {"export", "Writes parameters, batches, masks and every step's observables for other programs",
                                "shardproof export --workload tiny --track f64 --steps 3 --out oracle", run};

}  // namespace shardproof::harness
