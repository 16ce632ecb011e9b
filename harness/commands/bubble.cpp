// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/bubble.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/budget.hpp"
#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/job_options.hpp"
#include "harness/options.hpp"
#include "harness/progress.hpp"
#include "harness/recorded_replay.hpp"
#include "harness/run_case.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/plan.hpp"
#include "impl/plan/timeline.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

extern const Command bubble_command;

namespace {

struct Request {
  WorkloadOptions workload;
  std::vector<std::string> schedules;
  std::vector<std::int64_t> stages, microbatches, chunks;
};

bool parse(std::span<const std::string> args, Request& request) {
  std::string ranks = "4", microbatches = "8", chunks;
  Options options(bubble_command);
  request.workload.declare(options, "Of numbers: exact, f64 or native (default: native)");
  options
      .list("--schedule", request.schedules, "NAME",
            "Of list --schedules, or file:PATH; may be repeated (default: all)")
      .text("--ranks", ranks, "N,N,...", "Ranks of the pipeline (default: 4)")
      .text("--microbatches", microbatches, "N,N,...", "Parts of the batch (default: 8)")
      .text("--chunks", chunks, "N,N,...", "Stages that a rank holds, where there is a choice (default: the least)");
  if (!options.parse(args)) return false;
  if (request.workload.workload.empty()) request.workload.workload = "laptop";
  if (request.schedules.empty())
    for (const auto* generator : plan::schedules()) request.schedules.emplace_back(generator->name);
  const auto numbers = [](const char* option, const std::string& text) {
    return parse_numbers<std::int64_t>(option, text, 1, comm::most_thread_ranks);
  };
  request.stages = numbers("--ranks", ranks);
  request.microbatches = numbers("--microbatches", microbatches);
  request.chunks = chunks.empty() ? std::vector<std::int64_t>{0} : numbers("--chunks", chunks);
  return true;
}

bool is_stale(const plan::Strategy& strategy) {
  return plan::schedule_generator(strategy.schedule).stale != workload::StaleProgram::Rule::none;
}

/// Stages that update by themselves cannot clip by a norm of all, and to pipedream a batch is one minibatch.
std::vector<plan::Strategy> strategies(const Request& request, const workload::Workload& workload) {
  std::vector<plan::Strategy> all;
  for (const auto& name : request.schedules)
    for (const auto ranks : request.stages)
      for (const auto parts : request.microbatches)
        for (const auto chunks : request.chunks) {
          auto strategy = plan::parse_strategy(fmt::format("pp{} schedule={} microbatches={}{}", ranks, name, parts,
                                                           chunks > 0 ? fmt::format(" chunks={}", chunks) : ""));
          if (is_stale(strategy) && workload.clip > 0) strategy.clip = 0;
          if (strategy.schedule == "pipedream") strategy.microbatches = 1;
          if (std::ranges::find(all, strategy) == all.end()) all.push_back(std::move(strategy));
        }
  return all;
}

/// Nor can they share the weight of a tied head.
workload::Workload workload_of(workload::Workload workload, const plan::Strategy& strategy) {
  if (is_stale(strategy) && strategy.pp > 1) workload.tied_head = false;
  return plan::with_program_keys(std::move(workload), strategy);
}

std::string percent(double fraction) { return std::isnan(fraction) ? "-" : fmt::format("{:.2f} %", 100 * fraction); }

using ByRank = std::vector<std::int64_t>;
using Counted = std::vector<std::optional<double>>;  // by rank, where the ledger has it

Counted by_ledger(const Record& record, std::size_t ranks, const std::string& name) {
  Counted counted;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto key = ranks == 1 ? name : fmt::format("rank{}_{}", r, name);
    const auto at = std::ranges::find(record.ledgers, key, &std::pair<std::string, std::int64_t>::first);
    counted.push_back(at == record.ledgers.end() ? std::nullopt : std::optional(static_cast<double>(at->second)));
  }
  return counted;
}

/// "4 4 3": the checker's, each beside what the ledger counted where that differs.
std::string counted_by_both(const ByRank& checker, const Counted& ledger) {
  std::string text;
  for (std::size_t r = 0; r < checker.size(); ++r) {
    text += fmt::format("{}{}", r == 0 ? "" : " ", checker[r]);
    if (ledger[r] && *ledger[r] != static_cast<double>(checker[r])) text += fmt::format(" (ledger {:.4g})", *ledger[r]);
  }
  return text;
}

/// Copies of a rank's share of the model: versions of weights, and stages that a mirror holds too. A rank's share is
/// stages / ranks of them.
ByRank weight_copies(const plan::Pipeline& pipeline) {
  const plan::ScheduleIndex index(pipeline.schedule, plan::extent_of(pipeline.schedule));
  ByRank copies = plan::weight_versions(pipeline.schedule, index).most_kept;
  for (auto& n : copies) n = n * std::ssize(copies) / pipeline.placement.stages();
  return copies;
}

/// By the peak of parameters' memory: of those that are frozen there is one version.
Counted weight_copies_by_ledger(const plan::Plan& plan, const Record& record) {
  const auto ranks = plan.pipeline.schedule.ranks.size();
  Counted copies = by_ledger(record, ranks, "memory_parameter_peak_bytes");
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto pp = static_cast<std::int64_t>(r);
    double all = 0, trained = 0;  // bytes of one version
    for (const auto& layout : plan.layout.parameters) {
      const auto holders = plan.holders(layout);
      if (std::ranges::find(holders, pp) == holders.end()) continue;
      const auto bytes =
          static_cast<double>(elements_of(layout.held_dims(0))) * static_cast<double>(size_of(scalar_of(record.track)));
      all += bytes, trained += layout.parameter.trainable ? bytes : 0;
    }
    const auto stages = static_cast<double>(plan.pipeline.placement.stages_of(pp).size());
    if (trained == 0) copies[r].reset();
    if (copies[r])
      *copies[r] =
          (1 + (*copies[r] - all) / trained) * stages * static_cast<double>(ranks) / static_cast<double>(plan.stages());
  }
  return copies;
}

/// At unit costs; without a flush in the steady state, of steps that end with U.
double unit_bubble(const plan::Pipeline& pipeline) {
  const plan::Timeline line = plan::timeline(pipeline.schedule);
  if (!pipeline.is_stale()) return line.bubble_fraction();
  std::vector<std::vector<double>> ends(line.ranks.size());
  double drains = line.makespan;
  for (std::size_t r = 0; r < line.ranks.size(); ++r) {
    double last = 0;
    for (std::size_t k = 0; k < line.ranks[r].size(); ++k) {
      const auto kind = pipeline.schedule.ranks[r][k].kind;
      if (kind == plan::ActionKind::update) ends[r].push_back(line.ranks[r][k].end);
      if (kind == plan::ActionKind::forward) last = line.ranks[r][k].end;
    }
    drains = std::min(drains, last);
  }
  const SteadyPart part = steady_part(line.ranks, ends, drains);
  return part.steps > 0 ? part.bubble_fraction(std::ssize(ends)) : std::nan("");
}

std::vector<std::string> row_of(const TrainingJob& job, const Record& record) {
  const auto& strategy = job.strategy;
  const plan::Plan plan = plan::make_plan(job.workload, strategy);
  const auto shape = schedule_shape(strategy);
  const auto form = predict::bubble_overhead(strategy.schedule, strategy.pp, strategy.microbatches, shape.chunks);
  const auto& pipeline = plan.pipeline;
  const auto ranks = pipeline.schedule.ranks.size();
  return {
      strategy.schedule.text(),
      fmt::format("{}", strategy.pp),
      fmt::format("{}", shape.stages()),
      fmt::format("{}", strategy.microbatches),
      form ? percent(predict::bubble_fraction(*form)) : "-",
      percent(unit_bubble(pipeline)),
      percent(figure_of(record, "bubble_replay_fraction")),
      percent(figure_of(record, "bubble_wall_fraction")),
      counted_by_both(plan::peak_in_flight(pipeline.schedule), by_ledger(record, ranks, "microbatches_in_flight_peak")),
      counted_by_both(weight_copies(pipeline), weight_copies_by_ledger(plan, record))};
}

/// What differs for the strategies that have no flush; "" where there are none.
std::string without_flush(const std::vector<plan::Strategy>& all, const workload::Workload& workload) {
  std::vector<std::string> names;
  for (const auto& strategy : all)
    if (is_stale(strategy) && std::ranges::find(names, strategy.schedule.text()) == names.end())
      names.push_back(strategy.schedule.text());
  if (names.empty()) return "";
  return fmt::format("\nwithout a flush ({}): the steady state alone; {}{}to pipedream a batch is one microbatch\n",
                     fmt::join(names, ", "), workload.clip > 0 ? "clip=off; " : "",
                     workload.tied_head ? "tied_head=false; " : "");
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  const auto workload = workload::load(request.workload.workload, request.workload.settings());
  const workload::Corpus corpus(workload);
  const Environment here = environment();
  const auto all = strategies(request, workload);
  std::vector<std::vector<std::string>> rows = {{"schedule", "ranks", "stages", "microbatches", "bubble: form",
                                                 "unit costs", "recorded costs", "wall", "in flight by rank",
                                                 "weight copies by rank"}};
  std::vector<std::string> refused, apart;
  Progress progress;
  for (std::size_t k = 0; k < all.size(); ++k) {
    stop_if_interrupted();
    const plan::Strategy& strategy = all[k];
    const workload::Workload trained = workload_of(workload, strategy);
    const auto why = plan::refusals(strategy, trained);
    if (!why.empty()) {
      refused.push_back(fmt::format("{}: {}", plan::print(strategy), why.front().reason));
      continue;
    }
    progress.show(fmt::format("[{}/{}] {}", k + 1, all.size(), plan::print(strategy)));
    TrainingJob job{.workload = trained, .track = request.workload.track.value_or(Track::native), .strategy = strategy};
    job.device_memory_bytes = request.workload.device_memory.value_or(MemoryLedger::unlimited);
    refuse_too_large(job, nullptr, here.memory_bytes);
    Record record{
        .strategy = plan::print(strategy), .ranks = strategy.ranks(), .track = job.track, .environment = here};
    run_case(job, false, corpus, record, {});
    rows.push_back(row_of(job, record));
    for (const auto& one : disagreements(record)) apart.push_back(fmt::format("{}: {}", plan::print(strategy), one));
  }
  progress.clear();
  if (rows.size() == 1)
    throw NotSupported(fmt::format("no schedule can serve these shapes:\n{}", fmt::join(refused, "\n")));
  say(stdout, fmt::format("workload {}, {}, idle time of all ranks over all of their time\n\n{}", workload.name,
                          here.processor, table(rows)) +
                  without_flush(all, workload));
  if (!refused.empty()) say(stdout, fmt::format("\nrefused:\n{}\n", fmt::join(refused, "\n")));
  if (apart.empty()) return ExitCode::pass;
  say(stderr, fmt::format("shardproof: ledgers differ from their forms:\n{}\n", fmt::join(apart, "\n")));
  return ExitCode::check_failed;
}

}  // namespace

const Command bubble_command = {
    "bubble", "Trains under pipeline schedules and prints their bubbles, activations and weight copies beside theory",
    "shardproof bubble --workload tiny --set layers=8 --ranks 2,4 --microbatches 8", run};

}  // namespace shardproof::harness
