// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/command.hpp"
#include "harness/disturbance.hpp"
#include "harness/environment.hpp"
#include "harness/job_options.hpp"
#include "harness/options.hpp"
#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "harness/progress.hpp"
#include "harness/run_case.hpp"
#include "harness/run_folder.hpp"
#include "harness/run_report.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "harness/trace.hpp"
#include "harness/twin.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

extern const Command run_command;

namespace {

struct Request {
  TrainingJob job;
  Disturbance disturbance;
  std::string case_text, strategy, rerun, out;
  bool overwrite = false, no_check = false, dry_run = false;
  std::optional<std::int64_t> twin_rounds = {};
};

// False when only help was asked for.
bool parse(std::span<const std::string> args, Request& request) {
  JobOptions named(Track::native);
  bool poison = false;
  DisturbanceOptions disturbance({});
  Options options(run_command);
  named.declare(options);
  options.text("--out", request.out, "FOLDER", "Where results go (default: results/runs/ and the time)")
      .flag("--overwrite", request.overwrite, "Replace the run that the folder holds")
      .flag("--no-check", request.no_check, "Do not judge by the oracle; the record says unchecked")
      .flag("--poison", poison, "Fill fresh and freed memory with poison and scan every kernel's inputs")
      .number("--twin", request.twin_rounds, 1, 1000,
              "Also measure so many rounds against independent one-rank runs, as many as there are ranks")
      .flag("--dry-run", request.dry_run, "Print what the run would need, and train nothing");
  disturbance.declare(options);
  if (!options.parse(args)) return false;

  request.job = named.job();
  request.disturbance = disturbance.disturbance();
  request.job.threads = request.disturbance.threads();
  request.job.poison = poison;
  request.case_text = named.case_text();
  request.strategy = named.strategy();
  std::vector<std::string> words = named.words();
  words.insert(words.begin(), "run");
  if (request.no_check) words.push_back("--no-check");
  if (poison) words.push_back("--poison");
  for (auto& word : words_of(request.disturbance, {})) words.push_back(std::move(word));
  request.rerun = rerun_line(words);
  return true;
}

void print_step(const engine::StepResult& step, std::int64_t steps) {
  const std::string loss = step.loss                                   ? fmt::format("{:.6f}", *step.loss)
                           : step.skipped == engine::Skipped::no_label ? "none (no label)"
                                                                       : "not finite (step skipped)";
  const std::string norm = std::isnan(step.norm) ? "nan" : fmt::format("{:.4g}", step.norm);  // its sign says nothing
  say(stdout,
      fmt::format("step {:>{}} of {}  loss {}  norm {}\n", step.step, std::to_string(steps).size(), steps, loss, norm));
}

void add_twin(const Request& request, const workload::Corpus& corpus, Record& record) {
  constexpr std::int64_t steps_of_a_round = 5;
  std::vector<double> ratios;
  for (const TwinRound& round : against_twin(request.job, corpus, *request.twin_rounds, steps_of_a_round))
    ratios.push_back(round.efficiency());
  const RatioInterval interval = median_ratio(std::move(ratios));
  record.figures.emplace_back("twin_efficiency_low", interval.low);
  record.figures.emplace_back("twin_efficiency_median", interval.median);
  record.figures.emplace_back("twin_efficiency_high", interval.high);
}

ExitCode work(const Request& request, const workload::Corpus& corpus, Record& record, RunFolder& folder) {
  const auto start = std::chrono::steady_clock::now();
  ExitCode code = ExitCode::pass;
  std::string failure;
  Trained trained;
  const std::int64_t steps = request.job.workload.steps, every = (steps + 19) / 20;
  Progress progress;
  const auto on_step = [&](const engine::StepResult& step) {
    if (step.step == 1 || step.step % every == 0 || step.step == steps) {
      progress.clear();
      print_step(step, steps);
    }
    if (step.step < steps) progress.show(fmt::format("step {} of {}", step.step + 1, steps));
  };
  if (!request.no_check) progress.show("judging the first steps");
  try {
    trained = run_case(request.job, !request.no_check, corpus, record, on_step);
    if (record.verdict != Verdict::pass && !request.no_check) {
      code = exit_code_of(record.verdict);
      failure = fmt::format("{}: {}\n", name_of(record.verdict), record.reason);
    }
    if (const engine::StepResult& last = trained.steps.back(); last.skipped == engine::Skipped::non_finite) {
      code = worst({code, ExitCode::non_finite});
      const std::string stopped = fmt::format("training stopped at step {}, which is not finite", last.step);
      failure += stopped + "\n";
      if (record.verdict == Verdict::pass || request.no_check) {  // equal to the oracle's, and no success
        record.verdict = Verdict::fail;
        record.reason = stopped;
      }
    }
  } catch (const Interrupted&) {
    throw;  // the case did not end: no record
  } catch (const std::exception& error) {
    record.verdict = Verdict::error;
    record.reason = reason_of(error);
    code = exit_code_of(error);
    failure = record.reason + "\n";
  }
  if (request.twin_rounds && code == ExitCode::pass) {
    progress.show("measuring against the twin");
    add_twin(request, corpus, record);
  }
  progress.clear();
  record.figures.emplace_back("seconds",
                              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  folder.add(record);
  if (!trained.spans.empty()) folder.add_trace(chrome_trace(trained.spans));
  say(stdout, report(record, request.job.workload, trained) + fmt::format("results     {}\n", folder.path().string()));
  if (code != ExitCode::pass) say(stderr, fmt::format("shardproof: {}rerun: {}\n", printable(failure), record.rerun));
  return std::ferror(stdout) ? worst({code, ExitCode::write_failed}) : code;
}

void print_needs(const Request& request) {
  const workload::Workload& w = request.job.workload;
  const predict::Memory memory = memory_needed(request.job);
  const predict::Flops flops = predict::flops(w, largest_batch(w));
  fmt::print("{}", table({{"case", request.case_text},
                          {"parameters", fmt::format("{}", predict::parameter_count(w))},
                          {"memory", ""},
                          {"  parameter", print_bytes(memory.parameter)},
                          {"  gradient", print_bytes(memory.gradient)},
                          {"  optimizer_state", print_bytes(memory.optimizer_state)},
                          {"  saved", print_bytes(memory.saved)},
                          {"  total, at least", print_bytes(memory.total())},
                          {"FLOPs of a step", fmt::format("{:.4g}", flops.total())}}));
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  const Environment here = environment();
  const JudgedPart part = judged_part(request.job);
  if (request.twin_rounds) twin_of(request.job);  // refuses before anything runs
  if (request.dry_run) print_needs(request);
  refuse_too_large(request.job, request.no_check ? nullptr : &part, here.memory_bytes);
  const workload::Corpus corpus(request.job.workload);
  if (request.dry_run) return ExitCode::pass;

  Record record{.case_text = request.case_text,
                .workload = request.job.workload.name,
                .workload_hash = workload::hash(request.job.workload, corpus),
                .strategy = request.strategy,
                .ranks = request.job.strategy.ranks(),
                .track = request.job.track,
                .delays = static_cast<std::int64_t>(request.disturbance.delays.value_or(0)),
                .injections = request.disturbance.injections,
                .reason = "did not end",
                .rerun = request.rerun,
                .environment = here};
  RunFolder folder(request.out, request.overwrite);
  return folder.run(request.rerun, [&] { return work(request, corpus, record, folder); });
}

}  // namespace

const Command run_command = {"run",
                             "Trains a workload, judges its first steps by the oracle, measures speed and memory",
                             "shardproof run --workload tiny --track exact", run};

}  // namespace shardproof::harness
