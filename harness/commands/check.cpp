// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/options.hpp"
#include "harness/progress.hpp"
#include "harness/random_cases.hpp"
#include "harness/run_folder.hpp"
#include "harness/shrink.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "impl/comm/inject.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

extern const Command check_command;

namespace {

constexpr std::int64_t most_shrunk = 3;   // cases of a run that are made smaller
constexpr std::int64_t most_tries = 200;  // cases that are tried for each

struct Request {
  Suite suite;
  std::vector<Selected> cases;  // none: random ones
  std::int64_t threads = 1;
  std::optional<double> random_seconds;
  std::uint64_t seed = 1;
  Track track = Track::exact;
  CheckOptions options;
  std::string out, rerun;
  bool overwrite = false, list = false, shrink = false;
};

/// One case, given on the command line.
Suite suite_of(const std::vector<std::string>& words, const std::vector<std::string>& shows) {
  Entry entry;
  entry.name = "case";
  entry.cases.push_back(parse_case(workload::joined(words, " ")));
  entry.pass = 1;
  if (!shows.empty()) entry.shows.clear();
  for (const auto& name : shows) entry.shows.push_back(shown_of(name));
  return {"", "given on the command line", {std::move(entry)}};
}

/// False when only help was asked for.
bool parse(std::span<const std::string> args, Request& request) {
  std::string suite;
  bool random = false;
  std::vector<std::string> words, shows;
  DisturbanceOptions disturbance(standard_delays);
  Selection selection;
  std::optional<std::int64_t> seed, threads;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  Options options(check_command);
  options
      .text("--suite", suite, "NAME|FILE",
            "Which cases: a name (" + workload::joined(suite_names(), ", ") + ") or a JSON file")
      .words(words, "CASE", "One case instead, as failures and --list print it")
      .list("--shows", shows, "WHAT", "With CASE: what the case must show, or it is mistrusted; may be repeated")
      .list("--filter", selection.filters, "PATTERN",
            "Only these cases or entries; '*' is any characters; may be repeated")
      .track(selection.track, "Only cases of this track")
      .flag("--random", random, "Random legal strategies on random workloads instead, until the time is over")
      .duration("--time-budget", request.random_seconds, "With --random: how long, as 90s or 30m (default: 60s)")
      .number("--seed", seed, 0, most, "Other random workloads than the suite's, or than --random's")
      .shard(selection.shard, selection.shards)
      .flag("--list", request.list, "Print the cases and run nothing")
      .flag("--shrink", request.shrink, "Make cases that fail smaller, as long as they fail")
      .number("--threads", threads, 1, 64,
              "Cases that run at the same time (default: 3 a core and at most 6; with --delays off, a third)")
      .text("--out", request.out, "FOLDER", "Where results go (default: results/runs/ and the time)")
      .flag("--overwrite", request.overwrite, "Replace the run that the folder holds");
  disturbance.declare(options);
  if (!options.parse(args)) return false;
  if ((words.empty() ? 0 : 1) + (suite.empty() ? 0 : 1) + (random ? 1 : 0) != 1)
    throw BadInput("one of --suite, --random and a case must be given");
  if (request.random_seconds && !random) throw BadInput("--time-budget belongs to --random");
  if (random && (!selection.filters.empty() || selection.shards > 1 || request.list || !shows.empty()))
    throw BadInput("--random takes no --filter, --shard, --list and --shows");
  request.options.disturbance = disturbance.disturbance();
  if (random) {
    request.random_seconds = request.random_seconds.value_or(60);
    request.seed = static_cast<std::uint64_t>(seed.value_or(1));
    request.track = selection.track.value_or(Track::exact);
    request.suite.entries.resize(1);
    request.suite.entries[0].name = "random";
    request.suite.entries[0].shows = {Shown::any};
  }
  if (suite.empty() && !random && (seed || !selection.filters.empty() || selection.track || selection.shards > 1)) {
    throw BadInput("--filter, --track, --seed and --shard choose from a --suite; a case was given");
  }
  if (!suite.empty() && !shows.empty()) throw BadInput("--shows belongs to a case; entries of a suite have their own");
  if (!random) {
    request.suite = suite.empty()
                        ? suite_of(words, shows)
                        : load_suite(suite, seed ? std::optional(static_cast<std::uint64_t>(*seed)) : std::nullopt);
    request.cases = select(request.suite, selection);
  }
  // Ranks that are delayed mostly wait.
  const std::int64_t few = std::min<std::int64_t>(2, std::max(1u, std::thread::hardware_concurrency()));
  request.threads = threads.value_or(request.options.disturbance.delays ? 3 * few : few);
  std::vector<std::string> line = {"check"};
  line.insert(line.end(), args.begin(), args.end());
  request.rerun = rerun_line(line);
  return true;
}

/// Whether the ranks that the injections name exist.
bool injections_fit(const Request& request, std::int64_t ranks) {
  try {
    comm::parse_injections(request.options.disturbance.injections, ranks);
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

/// Random cases, kept in `cases`, until the time is over.
CaseSource random_source(const Request& request, std::deque<Case>& cases) {
  const auto start = std::chrono::steady_clock::now();
  return [&request, &cases, start, index = std::int64_t{0}]() mutable -> std::optional<Selected> {
    while (true) {
      stop_if_interrupted();
      const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
      if (gone.count() >= *request.random_seconds) return std::nullopt;
      Case value = random_case(request.seed, index++, request.track);
      if (injections_fit(request, value.ranks))
        return Selected{&request.suite.entries[0], &cases.emplace_back(std::move(value))};
    }
  };
}

/// Made smaller as long as it ends as it did, and said.
void say_smallest(const Selected& selected, const Checked& failed, const Request& request) {
  const auto& shows = selected.entry->shows;
  const auto check = [&](const Case& value) {
    return check_case(value, shows, failed.record.environment, request.options);
  };
  const auto fails = [&](const Case& value) {
    const Checked checked = check(value);
    return checked.record.verdict == failed.record.verdict && checked.code == failed.code;
  };
  const Shrunk smallest = shrink(*selected.value, fails, most_tries);
  const Record record = check(smallest.value).record;
  say(stderr, printable(fmt::format("smallest of {} tried: {}: {}\nrerun: {}\n", smallest.tried, record.case_text,
                                    record.reason, record.rerun)));
}

/// Pairs of factors' levels, of the entries that ran whole.
std::string coverage(const Request& request) {
  std::int64_t covered = 0, legal = 0;
  for (const auto& entry : request.suite.entries) {
    const auto ran = std::ranges::count(request.cases, &entry, &Selected::entry);
    if (!entry.pairs || ran < std::ssize(entry.cases)) continue;
    covered += entry.covered, legal += entry.legal;
  }
  return legal == 0 ? "" : fmt::format("covered  {} of {} legal pairs\n", covered, legal);
}

ExitCode work(const Request& request, RunFolder& folder) {
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  Progress progress;
  std::size_t done = 0;
  std::size_t idle = 0;
  bool refused_alone = false;  // a case on the command line has no manifest that expects it
  std::deque<Case> random_cases;
  std::vector<std::pair<Selected, Checked>> failed;  // the first ones
  const auto ended = [&](const Selected& selected, const Checked& as_judged) {
    Checked checked = as_judged;
    Record& record = checked.record;
    if (request.random_seconds && record.verdict == Verdict::mistrusted) {  // a draw that can show nothing is left out
      record.verdict = Verdict::skipped;
      checked.code = ExitCode::pass;
      ++idle;
    }
    folder.add(record);
    tally.add(selected, checked);
    ++done;
    progress.show(request.random_seconds ? fmt::format("{} cases", done)
                                         : fmt::format("{} of {} cases", done, request.cases.size()));
    const bool unsupported = record.verdict == Verdict::unsupported;
    const bool refused = unsupported && selected.entry->unsupported > 0;
    refused_alone = unsupported && request.suite.name.empty() && !request.random_seconds;
    if (record.verdict == Verdict::pass || record.verdict == Verdict::skipped || refused) return;
    progress.clear();
    say(stderr, printable(fmt::format("{} ({}): {}: {}\nrerun: {}\n", name_of(record.verdict), selected.entry->name,
                                      record.case_text, record.reason, record.rerun)));
    const bool can_shrink = !unsupported && checked.code != ExitCode::usage;
    if (request.shrink && can_shrink && std::ssize(failed) < most_shrunk) failed.emplace_back(selected, checked);
  };
  check_all(request.random_seconds ? random_source(request, random_cases) : one_by_one(request.cases), request.threads,
            environment(), ended, request.options);
  progress.clear();
  for (const auto& [selected, checked] : failed) say_smallest(selected, checked, request);
  for (const auto& sentence : refused_alone ? std::vector<std::string>() : tally.unexpected())
    say(stderr, printable("fail: " + sentence + "\n"));
  for (const auto& sentence : tally.split()) say(stderr, printable("fail: " + sentence + "\n"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say(stdout, tally.report() + coverage(request) +
                  fmt::format("seconds  {:.1f}\nresults  {}\n", seconds, folder.path().string()));
  ExitCode code = refused_alone ? ExitCode::usage : tally.code();
  if (100 * idle > done + 100) {
    say(stderr, fmt::format("fail: {} of {} random cases could show nothing; at most 1 in 100 may\n", idle, done));
    code = worst({code, ExitCode::check_failed});
  }
  return std::ferror(stdout) ? worst({code, ExitCode::write_failed}) : code;
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  if (request.list) {
    for (const auto& selected : request.cases)
      fmt::print("{}", printable(fmt::format("{}  ({})\n", print(*selected.value), selected.entry->name)));
    return ExitCode::pass;
  }
  RunFolder folder(request.out, request.overwrite);
  return folder.run(request.rerun, [&] { return work(request, folder); });
}

}  // namespace

const Command check_command = {"check", "Judges the cases of a suite by the oracle; measures nothing",
                               "shardproof check --suite one_device --filter 'tiny*' --track exact", run};

}  // namespace shardproof::harness
