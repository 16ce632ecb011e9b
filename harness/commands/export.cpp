// SPDX-License-Identifier: Apache-2.0
#include "harness/export.hpp"

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/job_options.hpp"
#include "harness/options.hpp"
#include "harness/run_report.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

extern const Command export_command;

namespace {

ExitCode run(std::span<const std::string> args) {
  JobOptions named(Track::f64);
  std::string out;
  bool overwrite = false, no_yardstick = false;
  Options options(export_command);
  named.declare(options);
  options.text("--out", out, "FOLDER", "A new folder for the files")
      .flag("--overwrite", overwrite, "Replace the export that the folder holds")
      .flag("--no-yardstick", no_yardstick, "Leave out yardstick.safetensors, which takes up to 17 runs of the oracle");
  if (!options.parse(args)) return ExitCode::pass;
  if (out.empty()) throw BadInput("--out is missing: the folder to write");

  const TrainingJob job = named.job();
  const JudgedPart whole{job, job.workload.steps, "full"};  // the yardstick runs as many oracles
  refuse_too_large(job, no_yardstick ? nullptr : &whole, environment().memory_bytes,
                   "--no-yardstick exports without oracles");
  const Exported exported = export_run(job, workload::Corpus(job.workload), out, overwrite, !no_yardstick);
  fmt::print("{} of {} ({}) in {}\ndigest {}\n", counted(exported.steps, "step"), job.workload.name, name_of(job.track),
             out, digest_text(exported.digest, exported.steps));
  if (exported.ended != engine::Skipped::non_finite) return ExitCode::pass;
  say(stderr, fmt::format("shardproof: step {} is not finite\n", exported.steps));
  return ExitCode::non_finite;
}

}  // namespace

const Command export_command = {"export",
                                "Writes parameters, batches, masks and every step's observables for other programs",
                                "shardproof export --workload tiny --track f64 --steps 3 --out build/oracle", run};

}  // namespace shardproof::harness
