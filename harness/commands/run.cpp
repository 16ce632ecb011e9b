// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/case_options.hpp"
#include "harness/command.hpp"
#include "harness/disturbance.hpp"
#include "harness/dry_run.hpp"
#include "harness/environment.hpp"
#include "harness/options.hpp"
#include "harness/process_options.hpp"
#include "harness/progress.hpp"
#include "harness/report_table.hpp"
#include "harness/resume.hpp"
#include "harness/run_case.hpp"
#include "harness/run_folder.hpp"
#include "harness/run_report.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "harness/trace.hpp"
#include "harness/transport.hpp"
#include "harness/twin.hpp"
#include "impl/comm/inject.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

extern const Command run_command;

namespace {

constexpr std::int64_t steps_of_a_round = 5;  // against the twin

struct Request {
  std::vector<RunCase> cases;
  Disturbance disturbance;
  FolderOptions folder{true};
  std::vector<std::string> args;
  std::string fabric_file;
  std::optional<Fabric> fabric = {};
  bool no_check = false, dry_run = false, poison = false;
  std::optional<std::int64_t> twin_rounds = {};
  std::optional<double> seconds = {};

  bool alone() const { return cases.size() == 1; }
};

// False when only help was asked for.
bool parse(std::span<const std::string> args, Request& request) {
  CaseOptions named;
  DisturbanceOptions disturbance({});
  Options options(run_command);
  named.declare(options);
  request.folder.declare(options);
  options
      .flag(
          "--no-check", request.no_check,
          "Do not judge by the oracle: the record says unchecked, and its verdict is skipped (exit code 0); nor train "
          "the synchronous program, which a stale one is compared with in learning")
      .flag("--poison", request.poison, "Fill fresh and freed memory with poison and scan every kernel's inputs")
      .number(
          "--twin", request.twin_rounds, 1, 1000,
          fmt::format("Also measure so many rounds against independent one-rank runs, as many as there are ranks: each "
                      "trains {} steps, then {} more on all of those at once",
                      steps_of_a_round, steps_of_a_round))
      .text("--fabric", request.fabric_file, "FILE",
            "Replays are over this fabric: a JSON object of name, latency_seconds and bytes_per_second")
      .duration("--time-budget", request.seconds, "Begin no case after so long, as 90s or 30m")
      .flag("--dry-run", request.dry_run, "Print what each case would need, and train nothing");
  disturbance.declare(options);
  ProcessOptions started;
  started.declare(options);
  if (!options.parse(args)) return false;
  started.apply();
  request.folder.require_legal();
  if (request.twin_rounds && processes() != nullptr)
    throw BadInput("--twin: its runs are threads of one process, without mpirun");
  if (request.dry_run && (request.folder.named() || !request.fabric_file.empty() || request.twin_rounds))
    throw BadInput(
        "--dry-run trains and writes nothing: --out, --overwrite, --resume, --fabric and --twin have no effect");
  if (!request.fabric_file.empty()) request.fabric = load_fabric(request.fabric_file);
  request.cases = named.cases(request.dry_run);
  request.disturbance = disturbance.disturbance();
  for (RunCase& one : request.cases) {
    if (!one.job) continue;
    one.job->threads = request.disturbance.threads();
    one.job->poison = request.poison;
  }
  if (request.alone() && !request.cases[0].job) throw NotSupported(request.cases[0].refusal);
  if (request.alone()) comm::parse_injections(request.disturbance.injections, request.cases[0].value.ranks);
  request.args = {"run"};
  request.args.insert(request.args.end(), args.begin(), args.end());
  return true;
}

/// The line that runs this case alone.
std::string rerun_of(const Request& request, const RunCase& one) {
  std::vector<std::string> words = one.words();
  words.insert(words.begin(), "run");
  if (request.no_check) words.push_back("--no-check");
  if (request.poison) words.push_back("--poison");
  if (request.twin_rounds) words.insert(words.end(), {"--twin", fmt::format("{}", *request.twin_rounds)});
  if (request.fabric) words.insert(words.end(), {"--fabric", request.fabric_file});
  for (auto& word : words_of(request.disturbance, {})) words.push_back(std::move(word));
  for (auto& word : words_of_processes()) words.push_back(std::move(word));
  return rerun_line(words);
}

void print_step(const engine::StepResult& step, std::int64_t steps) {
  const std::string loss = step.loss && std::isfinite(*step.loss)      ? fmt::format("{:.6f}", *step.loss)
                           : step.loss                                 ? "not finite"
                           : step.skipped == engine::Skipped::no_label ? "none (no label)"
                                                                       : "not finite (step skipped)";
  const bool known = !std::isnan(step.norm) || step.skipped == engine::Skipped::non_finite;
  const std::string norm = !known                  ? "not known"  // stages end their steps by themselves
                           : std::isnan(step.norm) ? "nan"        // its sign says nothing
                                                   : fmt::format("{:.4g}", step.norm);
  say(stdout,
      fmt::format("step {:>{}} of {}  loss {}  norm {}\n", step.step, std::to_string(steps).size(), steps, loss, norm));
}

void add_twin(const TrainingJob& job, std::int64_t rounds, const workload::Corpus& corpus, Record& record,
              Progress& progress, const std::string& prefix) {
  std::vector<double> ratios;
  const auto start = std::chrono::steady_clock::now();
  const auto on_round = [&](std::int64_t done) {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
    const double left = static_cast<double>(rounds - done) / static_cast<double>(std::max<std::int64_t>(done, 1));
    progress.show(fmt::format("{}against the twin: {} of {} rounds{}", prefix, done, rounds,
                              done == 0 ? "" : fmt::format(", {:.0f} s to go", left * gone.count())));
  };
  for (const TwinRound& round : against_twin(job, corpus, rounds, steps_of_a_round, on_round))
    ratios.push_back(round.efficiency());
  record.figures.emplace_back("twin_rounds", static_cast<double>(rounds));
  const RatioInterval interval = median_ratio(std::move(ratios));
  record.figures.emplace_back("twin_efficiency_low", interval.low);
  record.figures.emplace_back("twin_efficiency_median", interval.median);
  record.figures.emplace_back("twin_efficiency_high", interval.high);
}

void warn_of_stages(const RunCase& one) {
  if (const std::string warning = one.job ? stages_warning(one.job->workload, one.job->strategy) : ""; !warning.empty())
    say(stderr, printable(fmt::format("shardproof: warning: {}\n", warning)));
}

/// A case that has run, or was refused.
struct Measured {
  Record record;
  Trained trained;
  ExitCode code = ExitCode::pass;
  std::string failure;       // what stderr says of it
  bool no_call_met = false;  // by an injection

  void fail(const std::exception& error) {
    record.verdict = Verdict::error;
    record.reason = reason_of(error);
    code = exit_code_of(error);
    failure = record.reason + "\n";
    no_call_met = met_no_call(error, record.injections, record.ranks);
  }
};

/// What it says of a last step that is not finite; "" where it is.
std::string non_finite(const Trained& trained) {
  const engine::StepResult& last = trained.steps.back();
  return last.skipped == engine::Skipped::non_finite
             ? fmt::format("training stopped at step {}, which is not finite", last.step)
             : "";
}

/// Trains and judges; what goes wrong is the record's verdict. Throws Interrupted: the case did not end.
void train_and_judge(const Request& request, const TrainingJob& job, const workload::Corpus& corpus, Progress& progress,
                     const std::string& prefix, Measured& measured) {
  Record& record = measured.record;
  const std::int64_t steps = job.workload.steps, every = (steps + 19) / 20;
  const auto on_step = [&](const engine::StepResult& step) {
    if (request.alone() && (step.step == 1 || step.step % every == 0 || step.step == steps)) {
      progress.clear();
      print_step(step, steps);
    }
    if (step.step < steps) progress.show(fmt::format("{}step {} of {}", prefix, step.step + 1, steps));
  };
  if (!request.no_check) progress.show(prefix + "judging the first steps");
  try {
    measured.trained = run_case(job, !request.no_check, corpus, record, on_step);
    if (record.verdict != Verdict::pass && !request.no_check) {
      measured.code = exit_code_of(record.verdict);
      measured.failure = fmt::format("{}: {}\n", name_of(record.verdict), record.reason);
    }
    if (const std::string wrong = non_finite(measured.trained); !wrong.empty()) {
      measured.code = worst({measured.code, ExitCode::non_finite});
      measured.failure += wrong + "\n";
      if (record.verdict == Verdict::pass || request.no_check) {  // equal to the oracle's, and no success
        record.verdict = Verdict::fail;
        record.reason = wrong;
      }
    }
    if (request.twin_rounds && measured.code == ExitCode::pass) {
      add_twin(job, *request.twin_rounds, corpus, record, progress, prefix);
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    measured.fail(error);
  }
}

Measured measure(const Request& request, const RunCase& one, const Environment& here, Progress& progress,
                 const std::string& prefix) {
  const auto start = std::chrono::steady_clock::now();
  Measured measured{.record = {.case_text = print(one.value),
                               .workload = one.value.workload,
                               .strategy = one.value.strategy,
                               .ranks = one.value.ranks,
                               .track = one.value.track,
                               .transport = std::string(transport()),
                               .delays = static_cast<std::int64_t>(request.disturbance.delays.value_or(0)),
                               .injections = request.disturbance.injections,
                               .reason = "did not end",
                               .rerun = rerun_of(request, one),
                               .environment = here,
                               .fabric = request.fabric},
                    .trained = {},
                    .failure = {}};
  Record& record = measured.record;
  if (!one.job) {
    record.verdict = Verdict::unsupported;
    record.reason = one.refusal;
    return measured;
  }
  try {
    const JudgedPart part = judged_part(*one.job);
    refuse_too_large(*one.job, request.no_check ? nullptr : &part, here.memory_bytes);
    const workload::Corpus corpus(one.job->workload);
    record.workload = one.job->workload.name;
    record.workload_hash = workload::hash(one.job->workload, corpus);
    train_and_judge(request, *one.job, corpus, progress, prefix, measured);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    measured.fail(error);
  }
  record.figures.emplace_back("seconds",
                              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return measured;
}

/// One line about one of many cases.
std::string line_of(const Record& record, const std::string& prefix) {
  const double rate = figure_of(record, "tokens_per_second_median");
  std::string text = fmt::format("{}{}: {}", prefix, record.case_text,
                                 record.judged == "unchecked" ? "unchecked" : name_of(record.verdict));
  if (!std::isnan(rate)) text += fmt::format(", {:.0f} tokens/s (wall)", rate);
  if (!record.reason.empty() && record.judged != "unchecked") text += ": " + record.reason;
  return printable(text + "\n");
}

std::string to_go_on(const Request& request, const RunFolder& folder) {
  return printable(fmt::format("to go on: {}\n", request.folder.resuming_line(request.args, folder)));
}

/// `earlier`: the record that each case has already.
ExitCode work(const Request& request, const Environment& here, std::span<const std::optional<Record>> earlier,
              RunFolder& folder) {
  const auto start = std::chrono::steady_clock::now();
  const auto gone = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::vector<Record> records;
  std::vector<ExitCode> codes;
  Progress progress;
  const std::size_t all = request.cases.size();
  for (std::size_t k = 0; k < all; ++k) {
    stop_if_interrupted();
    if (earlier[k]) {
      if (request.alone()) say(stdout, fmt::format("{}: it has run already\n", earlier[k]->case_text));
      if (earlier[k]->verdict != Verdict::unsupported) codes.push_back(ExitCode::pass);
      records.push_back(*earlier[k]);
      continue;
    }
    if (request.seconds && gone() > *request.seconds) {
      progress.clear();
      const auto left = std::ranges::count(earlier.subspan(k), false, &std::optional<Record>::has_value);
      say(stderr, fmt::format("shardproof: --time-budget is over: {} of {} cases did not run\n{}", left, all,
                              to_go_on(request, folder)));
      codes.push_back(ExitCode::inconclusive);
      break;
    }
    warn_of_stages(request.cases[k]);
    const std::string prefix = request.alone() ? "" : fmt::format("[{}/{}] ", k + 1, all);
    Measured measured = measure(request, request.cases[k], here, progress, prefix);
    Record& record = measured.record;
    const bool skipped = measured.no_call_met && !request.alone();  // the fault has nothing to act on here
    if (skipped) {
      record.verdict = Verdict::skipped;
      measured.code = ExitCode::pass;
    }
    progress.clear();
    folder.add(record);
    const auto& spans = measured.trained.spans;  // the first step is not recorded
    if (!spans.empty() && !spans.front().steps.empty()) folder.add_trace(chrome_trace(spans));
    say(stdout,
        request.alone() ? report(record, request.cases[k].job->workload, measured.trained) : line_of(record, prefix));
    if (const std::string warning = mfu_warning(record); !warning.empty())
      say(stderr, printable(fmt::format("shardproof: warning: {}: {}\n", record.case_text, warning)));
    if (measured.code != ExitCode::pass)
      say(stderr, fmt::format("shardproof: {}rerun: {}\n", printable(measured.failure), record.rerun));
    if (record.verdict != Verdict::unsupported && !skipped) codes.push_back(measured.code);
    records.push_back(record);
  }
  if (!request.alone()) say(stdout, "\n" + printable(table_of(records)));
  say(stdout, fmt::format("results     {}\n", folder.path().string()));
  if (codes.empty()) say(stderr, "shardproof: no case has run: all were refused or skipped\n");
  ExitCode code = codes.empty() ? ExitCode::usage : ExitCode::pass;
  for (const ExitCode one : codes) code = worst({code, one});
  return std::ferror(stdout) ? worst({code, ExitCode::write_failed}) : code;
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  if (request.dry_run) {
    for (const RunCase& one : request.cases) warn_of_stages(one);
    say(stdout, printable(dry_run(request.cases, environment().memory_bytes)));
    return std::ferror(stdout) ? ExitCode::write_failed : ExitCode::pass;
  }
  for (const RunCase& one : request.cases)
    if (request.twin_rounds && one.job) twin_of(*one.job);  // refuses before anything runs
  const Environment here = environment();
  const auto crowded = [&](const RunCase& one) { return one.job && one.value.ranks > here.cores; };
  if (std::ranges::any_of(request.cases, crowded))  // one clock for all that are compared
    for (RunCase& one : request.cases)
      if (one.job) one.job->processor_time = true;
  if (request.alone()) {  // a case that cannot run leaves no folder behind
    const JudgedPart part = judged_part(*request.cases[0].job);
    refuse_too_large(*request.cases[0].job, request.no_check ? nullptr : &part, here.memory_bytes);
    const workload::Corpus readable(request.cases[0].job->workload);
  }
  RunFolder folder = request.folder.open();
  const auto key_of = [&](std::size_t k) {
    const RunCase& one = request.cases[k];
    CaseKey key{.case_text = print(one.value), .rerun = rerun_of(request, one), .fabric = request.fabric};
    if (one.job) key.workload_hash = [&w = one.job->workload] { return workload::hash(w, workload::Corpus(w)); };
    return key;
  };
  const auto earlier = resume(folder, request.cases.size(), key_of, here);
  keep_flight_in(folder.path());
  return folder.run(rerun_line(request.args), [&] {
    try {
      return work(request, here, earlier, folder);
    } catch (const Interrupted&) {
      if (!request.alone()) say(stderr, to_go_on(request, folder));
      throw;
    }
  });
}

}  // namespace

const Command run_command = {"run",
                             "Trains a workload, judges its first steps by the oracle, measures speed and memory",
                             "shardproof run --workload tiny --track exact", run};

}  // namespace shardproof::harness
