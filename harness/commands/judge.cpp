// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "harness/case.hpp"
#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/judge_candidate_report.hpp"
#include "harness/judge_yardstick.hpp"
#include "harness/options.hpp"
#include "harness/resume.hpp"
#include "harness/run_folder.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {

extern const Command judge_command;

namespace {

constexpr const char* notes =
    R"(The candidate starts from the oracle's initial.safetensors, trains on the tokens, labels, documents and
dropout masks of its step files, and writes step-0001.safetensors, step-0002.safetensors, ... with
  loss             the mean over the labels of the global batch; none at a step without labels
  gradient/NAME    of that loss, summed over all ranks, before clipping, not scaled; of trainable parameters
  parameter/NAME   after the step's update
  norm, clip       may be left out: of all gradients together, and the factor that clipping makes of it
  state/NAME.first_moment, .second_moment, .momentum   may be left out: the optimizer's
and "workload_hash" (export.json has it) in each file's metadata; "strategy" there is what --strategy is.
Elements are F64, F32, F16 or BF16. A map says where else they are:
  {"files": ["rank-0/step-{step}.safetensors", "rank-1/step-{step}.safetensors"],
   "tensors": {"token_embedding.weight": "wte.weight",
               "blocks.*.mlp.up.weight": {"from": "h.*.mlp.c_fc.weight", "transpose": true, "shards": 0},
               "blocks.*.attention.query.bias": {"from": "h.*.attn.c_attn.bias", "dim": 0, "range": [0, 24]},
               "blocks.*.attention.key.bias": {"join": ["h.*.key.0", {"from": "h.*.key.1", "file": 1}], "along": 0}}}
A parameter that "tensors" does not name has the oracle's name. Order: transpose, then range, then the parts together.
A tensor that several files hold must be equal in all.

A bound is 8 (e + u max|tensor|), with e the oracle's yardstick and u the unit roundoff of the precision. Parameters
are judged by the update alone: the optimizer in double, applied to the candidate's own gradients.
Exit code 0: it passed; 1: it failed; 2: something cannot be read.)";

struct Request {
  std::filesystem::path oracle, candidate;
  ExportAbout about;
  CandidateMap map;
  CandidateOptions options;
  FolderOptions folder{false};
  std::string rerun;
};

/// False when only help was asked for.
bool parse(std::span<const std::string> args, Request& request) {
  std::string oracle, candidate, map, precision, strategy;
  std::vector<std::string> names;
  for (const Precision& p : precisions()) names.emplace_back(name_of(p.dtype));
  Options options(judge_command);
  options.text("--oracle", oracle, "FOLDER", "What `shardproof export --track f64` wrote")
      .text("--candidate", candidate, "FOLDER", "What your framework wrote")
      .text("--map", map, "FILE", "JSON: where the candidate keeps the oracle's tensors (default: as the oracle)")
      .choice("--precision", precision, names,
              "Whose bounds (default: the coarsest type of the candidate's gradients and parameters)")
      .text("--strategy", strategy, "STRATEGY", "How it was spread, to name the axis of a wrong scale: 'dp2 tp2'")
      .notes(notes);
  request.folder.declare(options);
  if (!options.parse(args)) return false;
  if (oracle.empty() || candidate.empty())
    throw BadInput(oracle.empty() ? "--oracle is missing: the folder of an export"
                                  : "--candidate is missing: the folder of what is to be judged");
  if (!strategy.empty()) request.options.strategy = plan::parse_strategy(strategy);
  for (const Precision& p : precisions())
    if (precision == name_of(p.dtype)) request.options.precision = p.dtype;
  request.oracle = oracle, request.candidate = candidate;
  request.about = read_export_about(request.oracle);
  if (request.about.track != Track::f64)
    throw BadInput(fmt::format("{}: it is an export of --track {}; only one of --track f64 judges others", oracle,
                               name_of(request.about.track)));
  if (request.about.workload.hidden == 1)
    throw BadInput(
        fmt::format("{}: its workload has hidden=1: the layer norm of one feature is constant, and what is left "
                    "of the gradients before it are roundings, for which there is no yardstick",
                    oracle));
  const auto parameters = workload::parameters(request.about.workload);
  request.map = map.empty() ? plain_map(parameters) : parse_candidate_map(read_file(map, 1 << 26), map, parameters);
  std::vector<std::string> line = {"judge"};
  line.insert(line.end(), args.begin(), args.end());
  request.rerun = rerun_line(line);
  return true;
}

Record record_of(const Request& request, const CandidateJudgement& judgement, double seconds) {
  Record record;
  Case value;
  value.workload = request.about.workload.name;
  value.strategy = plan::print(judgement.strategy);
  value.ranks = judgement.strategy.ranks();
  value.track = judgement.precision == Dtype::f64 ? Track::f64 : Track::native;
  record.case_text = print(value);
  record.workload = value.workload;
  record.workload_hash = request.about.workload_hash;
  record.strategy = value.strategy;
  record.ranks = value.ranks;
  record.track = value.track;
  record.device = record.transport = "unknown";
  record.verdict = judgement.verdict;
  record.reason = judgement.reason;
  record.judged = "full";
  record.compared = judgement.compared;
  record.rerun = request.rerun;
  double worst = 0;
  std::int64_t failed = 0;
  for (const TensorResult& r : judgement.results) worst = std::max(worst, r.worst), failed += r.failed;
  record.figures = {{"error_over_bound", worst},
                    {"tensors", static_cast<double>(judgement.results.size())},
                    {"tensors_wrong", static_cast<double>(failed)},
                    {"tensors_extra", static_cast<double>(judgement.extra.size())},
                    {"seconds", seconds}};
  record.environment = environment();
  return record;
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  const auto start = std::chrono::steady_clock::now();
  // Before anything is written: what cannot be read leaves nothing behind.
  const auto judgement =
      judge_candidate(request.oracle, request.about, request.candidate, request.map, request.options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const Record record = record_of(request, judgement, seconds.count());
  RunFolder folder = request.folder.open();
  return folder.run(request.rerun, [&] {
    folder.add(record);
    write_file(folder.path() / "tensors.csv", csv(judgement));
    const bool passed = record.verdict == Verdict::pass;
    say(stdout, printable(fmt::format(
                    "oracle     {}: {}, {}\ncandidate  {}: {}, by the bounds of {}{}\n\n{}\nverdict    {}{}\n"
                    "results    {}\n",
                    request.oracle.string(), record.workload, counted(request.about.steps, "step"),
                    request.candidate.string(), record.strategy, name_of(judgement.precision),
                    request.options.precision ? "" : " (its coarsest type; --precision)", report(judgement),
                    name_of(record.verdict), passed ? fmt::format(" ({} elements compared)", record.compared) : "",
                    folder.path().string())));
    if (!passed)
      say(stderr, printable(fmt::format("{}: {}\nrerun: {}\n", name_of(record.verdict), record.reason, record.rerun)));
    const ExitCode code = exit_code_of(record.verdict);
    return std::ferror(stdout) ? worst({code, ExitCode::write_failed}) : code;
  });
}

}  // namespace

const Command judge_command = {"judge", "Judges what another framework trained by an exported oracle",
                               "shardproof judge --oracle build/oracle --candidate build/candidate --strategy dp2",
                               run};

}  // namespace shardproof::harness
