// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/bubble.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
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

/// "2,4": each a whole number from 1.
std::vector<std::int64_t> numbers(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> values;
  for (const auto part : std::views::split(text, ',')) {
    const auto value = parse_number<std::int64_t>(std::string_view(part.begin(), part.end()));
    if (!value || *value < 1 || *value > comm::most_thread_ranks)
      throw BadInput(fmt::format("{} {}: it must be a list as 2,4 of whole numbers from 1 to {}", option, text,
                                 comm::most_thread_ranks));
    values.push_back(*value);
  }
  return values;
}

bool parse(std::span<const std::string> args, Request& request) {
  std::string ranks = "4", microbatches = "8", chunks;
  Options options(bubble_command);
  request.workload.declare(options, "Of numbers: exact, f64 or native (default: native)");
  options
      .list("--schedule", request.schedules, "NAME",
            "Of list --schedules, or file:PATH; may be repeated (default: all that run)")
      .text("--ranks", ranks, "N,N,...", "Ranks of the pipeline (default: 4)")
      .text("--microbatches", microbatches, "N,N,...", "Parts of the batch (default: 8)")
      .text("--chunks", chunks, "N,N,...", "Stages that a rank holds, where there is a choice (default: the least)");
  if (!options.parse(args)) return false;
  if (request.workload.workload.empty()) request.workload.workload = "laptop";
  if (request.schedules.empty())
    for (const auto* generator : plan::schedules())
      if (generator->runs) request.schedules.emplace_back(generator->name);
  request.stages = numbers("--ranks", ranks);
  request.microbatches = numbers("--microbatches", microbatches);
  request.chunks = chunks.empty() ? std::vector<std::int64_t>{0} : numbers("--chunks", chunks);
  return true;
}

std::vector<plan::Strategy> strategies(const Request& request) {
  std::vector<plan::Strategy> all;
  for (const auto& name : request.schedules)
    for (const auto ranks : request.stages)
      for (const auto parts : request.microbatches)
        for (const auto chunks : request.chunks) {
          const auto text = fmt::format("pp{} schedule={} microbatches={}{}", ranks, name, parts,
                                        chunks > 0 ? fmt::format(" chunks={}", chunks) : "");
          auto strategy = plan::parse_strategy(text);
          if (std::ranges::find(all, strategy) == all.end()) all.push_back(std::move(strategy));
        }
  return all;
}

std::string percent(double fraction) { return std::isnan(fraction) ? "-" : fmt::format("{:.2f} %", 100 * fraction); }

/// "4 4 3": a rank's, each beside what the ledger counted where that differs.
std::string counted_by_both(const std::vector<std::int64_t>& checker, const Record& record, const std::string& name) {
  std::string text;
  for (std::size_t r = 0; r < checker.size(); ++r) {
    const auto key = checker.size() == 1 ? name : fmt::format("rank{}_{}", r, name);
    const auto at = std::ranges::find(record.ledgers, key, &std::pair<std::string, std::int64_t>::first);
    text += r == 0 ? "" : " ";
    text += fmt::format("{}", checker[r]);
    if (at != record.ledgers.end() && at->second != checker[r]) text += fmt::format(" (ledger {})", at->second);
  }
  return text;
}

/// The most versions of a stage's weights that a rank keeps.
std::int64_t weight_copies(const plan::Pipeline& pipeline) {
  const plan::ScheduleIndex index(pipeline.schedule, plan::extent_of(pipeline.schedule));
  return std::ranges::max(plan::weight_versions(pipeline.schedule, index).most_kept);
}

std::vector<std::string> row_of(const plan::Strategy& strategy, const Record& record) {
  const plan::Pipeline pipeline = plan::pipeline_of(strategy);
  const auto shape = schedule_shape(strategy);
  const auto form = predict::bubble_overhead(strategy.schedule, strategy.pp, strategy.microbatches, shape.chunks);
  const double unit = plan::timeline(pipeline.schedule).bubble_fraction();
  return {strategy.schedule.text(),
          fmt::format("{}", strategy.pp),
          fmt::format("{}", shape.stages()),
          fmt::format("{}", strategy.microbatches),
          form ? percent(predict::bubble_fraction(*form)) : "-",
          percent(unit),
          percent(figure_of(record, "bubble_replay_fraction")),
          percent(figure_of(record, "bubble_wall_fraction")),
          counted_by_both(plan::peak_in_flight(pipeline.schedule), record, "microbatches_in_flight_peak"),
          fmt::format("{}", weight_copies(pipeline))};
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  const auto workload = workload::load(request.workload.workload, request.workload.settings());
  const workload::Corpus corpus(workload);
  const Environment here = environment();
  const auto all = strategies(request);
  std::vector<std::vector<std::string>> rows = {{"schedule", "ranks", "stages", "microbatches", "bubble: form",
                                                 "unit costs", "recorded costs", "wall", "in flight by rank",
                                                 "weight copies"}};
  std::vector<std::string> refused, apart;
  Progress progress;
  for (std::size_t k = 0; k < all.size(); ++k) {
    stop_if_interrupted();
    const plan::Strategy& strategy = all[k];
    const auto why = plan::refusals(strategy, workload);
    if (!why.empty()) {
      refused.push_back(fmt::format("{}: {}", plan::print(strategy), why.front().reason));
      continue;
    }
    progress.show(fmt::format("[{}/{}] {}", k + 1, all.size(), plan::print(strategy)));
    TrainingJob job{
        .workload = workload, .track = request.workload.track.value_or(Track::native), .strategy = strategy};
    job.device_memory_bytes = request.workload.device_memory.value_or(MemoryLedger::unlimited);
    refuse_too_large(job, nullptr, here.memory_bytes);
    Record record{
        .strategy = plan::print(strategy), .ranks = strategy.ranks(), .track = job.track, .environment = here};
    run_case(job, false, corpus, record, {});
    rows.push_back(row_of(strategy, record));
    for (const auto& one : disagreements(record)) apart.push_back(fmt::format("{}: {}", plan::print(strategy), one));
  }
  progress.clear();
  if (rows.size() == 1)
    throw NotSupported(fmt::format("no schedule can serve these shapes:\n{}", fmt::join(refused, "\n")));
  say(stdout, fmt::format("workload {}, {}, idle time of all ranks over all of their time\n\n{}", workload.name,
                          here.processor, table(rows)));
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
