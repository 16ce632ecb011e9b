// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/exhaustive.hpp"
#include "harness/options.hpp"
#include "harness/process_options.hpp"
#include "harness/progress.hpp"
#include "harness/random_cases.hpp"
#include "harness/resume.hpp"
#include "harness/run_folder.hpp"
#include "harness/shrink.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "harness/transport.hpp"
#include "impl/comm/inject.hpp"
#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

extern const Command check_command;

namespace {

constexpr std::int64_t most_shrunk = 3;   // cases of a run that are made smaller
constexpr std::int64_t most_tries = 200;  // cases that are tried for each

struct Request {
  Suite suite;
  std::vector<Selected> cases;             // none: random ones, or with `exhaustive` those that a run had already begun
  std::shared_ptr<Exhaustive> exhaustive;  // none: the cases
  std::int64_t threads = 1;
  bool random = false;
  std::optional<double> seconds;  // how long cases are begun
  std::uint64_t seed = 1;
  Track track = Track::exact;
  CheckOptions options;
  FolderOptions folder{true};
  std::vector<std::string> args;
  bool list = false, shrink = false;
};

/// One case, given on the command line.
Suite suite_of(const std::string& text, const std::vector<std::string>& shows) {
  Entry entry;
  entry.name = "case";
  entry.cases.push_back(parse_case(text));
  entry.pass = 1;
  if (!shows.empty()) entry.shows.clear();
  for (const auto& name : shows) entry.shows.push_back(shown_of(name));
  return {"", "given on the command line", {std::move(entry)}};
}

/// False when only help was asked for.
bool parse(std::span<const std::string> args, Request& request) {
  std::string suite, one;
  bool& random = request.random;
  bool exhaustive = false;
  std::vector<std::string> shows;
  DisturbanceOptions disturbance(standard_delays);
  Selection selection;
  std::optional<std::int64_t> seed, threads;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  Options options(check_command);
  options
      .text("--suite", suite, "NAME|FILE",
            "Which cases: a name (" + workload::joined(suite_names(), ", ") + ") or a JSON file")
      .word(one, "CASE", "One case instead, quoted, as failures and --list print it")
      .list("--shows", shows, "WHAT", "With CASE: what the case must show, or it is mistrusted; may be repeated")
      .list("--filter", selection.filters, "PATTERN",
            "Only these cases or entries; '*' is any characters; may be repeated")
      .track(selection.track, "Only cases of this track")
      .flag("--random", random, "Random legal strategies on random workloads instead, until the time is over")
      .flag("--exhaustive", exhaustive,
            "With --suite: all legal combinations where an entry covers pairs; how many is printed first, and "
            "--filter chooses entries by name")
      .duration("--time-budget", request.seconds,
                "How long cases are begun, as 90, 90s or 30m: with --random (default: 60s) or --exhaustive (default: "
                "to the end)")
      .number("--seed", seed, 0, most,
              "Seed that random workloads are drawn with (default: the suite's own; with --random, 1)")
      .shard(selection.shard, selection.shards)
      .flag("--list", request.list, "Print the cases and run nothing")
      .flag("--shrink", request.shrink,
            fmt::format("Make the first {} cases that fail smaller, as long as they fail alike; at most {} tries each, "
                        "after the --time-budget",
                        most_shrunk, most_tries))
      .number("--threads", threads, 1, 64,
              "Cases that run at the same time (default: 3 a core and at most 6; with --delays off, a third)");
  request.folder.declare(options);
  ProcessOptions started;
  started.declare(options);
  options.notes(
      "Every case runs on poisoned memory, and on several ranks with delays unless they are off (run: neither, unless "
      "asked).\nA case of a suite, or a random one, in which an --inject meets no call is skipped; if that is all of "
      "them, it is a usage error.");
  disturbance.declare(options);
  if (!options.parse(args)) return false;
  started.apply();
  std::vector<std::string> given;
  if (!suite.empty()) given.emplace_back("--suite");
  if (random) given.emplace_back("--random");
  if (!one.empty()) given.emplace_back("a case");
  if (given.empty()) throw BadInput("one of --suite, --random and a case must be given");
  if (given.size() > 1) throw BadInput(workload::joined(given, " and ") + " exclude each other");
  request.folder.require_legal();
  if (random && request.folder.resumes()) throw BadInput("--random draws its cases anew: there is nothing to --resume");
  if (exhaustive && suite.empty()) throw BadInput("--exhaustive belongs to --suite");
  if (request.seconds && !random && !exhaustive) throw BadInput("--time-budget belongs to --random and --exhaustive");
  if (random && (!selection.filters.empty() || selection.shards > 1 || request.list || !shows.empty()))
    throw BadInput("--random takes no --filter, --shard, --list and --shows");
  request.options.disturbance = disturbance.disturbance();
  if (random) {
    request.seconds = request.seconds.value_or(60);
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
                        ? suite_of(one, shows)
                        : load_suite(suite, seed ? std::optional(static_cast<std::uint64_t>(*seed)) : std::nullopt);
    const std::vector<Selected> in_pairs = select(request.suite, exhaustive ? Selection{} : selection);
    if (exhaustive)
      request.exhaustive = std::make_shared<Exhaustive>(request.suite, selection);
    else
      request.cases = in_pairs;
    const auto is_random = [](const Selected& s) { return s.value->workload.starts_with("random:"); };
    if (seed && std::ranges::none_of(in_pairs, is_random))
      throw BadInput("--seed has no effect: no case that is selected has a random workload");
    if (!one.empty()) comm::parse_injections(request.options.disturbance.injections, request.cases[0].value->ranks);
  }
  if (processes() != nullptr) {
    const auto more = std::erase_if(request.cases, [](const Selected& s) { return s.value->ranks > most_ranks(); });
    if (more > 0)
      say(stderr,
          fmt::format("not selected, for {} processes of at most {} were started: {} of more ranks\n",
                      processes()->size(), counted(most_ranks() / processes()->size(), "rank"), counted(more, "case")));
    if (request.cases.empty() && !random) throw BadInput("no case is left");
    if (threads) throw BadInput("--threads: processes run one case at a time");
    request.threads = 1;
  }
  // Ranks that are delayed mostly wait.
  const std::int64_t few = std::min<std::int64_t>(2, std::max(1u, std::thread::hardware_concurrency()));
  if (processes() == nullptr) request.threads = threads.value_or(request.options.disturbance.delays ? 3 * few : few);
  request.args = {"check"};
  request.args.insert(request.args.end(), args.begin(), args.end());
  return true;
}

/// Random cases, kept in `cases`.
CaseSource random_source(const Request& request, std::deque<Case>& cases) {
  return [&request, &cases, index = std::int64_t{0}]() mutable -> std::optional<Selected> {
    while (true) {
      stop_if_interrupted();
      Case value = random_case(request.seed, index++, request.track);
      if (value.ranks > most_ranks()) continue;
      if (injections_fit(request.options.disturbance.injections, value.ranks))
        return Selected{&request.suite.entries[0], &cases.emplace_back(std::move(value))};
    }
  };
}

CaseSource until_over(CaseSource source, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  return [start, seconds, source = std::move(source)]() -> std::optional<Selected> {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
    return gone.count() >= seconds ? std::nullopt : source();
  };
}

/// Those that are left of the cases, then what follows.
CaseSource source_of(const Request& request, std::span<const Selected> left, std::deque<Case>& random_cases) {
  CaseSource source = request.random ? random_source(request, random_cases) : one_by_one(left);
  if (request.exhaustive)
    source = [first = std::move(source), &request] {
      const auto selected = first();
      return selected ? selected : request.exhaustive->next();
    };
  return request.seconds ? until_over(std::move(source), *request.seconds) : source;
}

/// Made smaller as long as it ends as it did, and said. `which`: "1 of 3" of those that fail.
void say_smallest(const Selected& selected, const Checked& failed, const Request& request, const std::string& which) {
  const auto& shows = selected.entry->shows;
  const auto check = [&](const Case& value) {
    return check_case(value, shows, failed.record.environment, request.options);
  };
  const auto fails = [&](const Case& value) {
    const Checked checked = check(value);
    return checked.record.verdict == failed.record.verdict && checked.code == failed.code &&
           checked.finding == failed.finding;
  };
  const Shrunk smallest = shrink(*selected.value, fails, most_tries);
  const Record record = check(smallest.value).record;
  say(stderr,
      printable(fmt::format("failure {}, {}: the smallest of {} tried that fails alike: {}: {}\nrerun: {}\n", which,
                            failed.record.case_text, smallest.tried, record.case_text, record.reason, record.rerun)));
}

/// Pairs of factors' levels, of the entries that ran whole; or how far the grids were walked.
std::string coverage(const Request& request) {
  if (request.exhaustive) return request.exhaustive->report();
  std::int64_t covered = 0, legal = 0;
  for (const auto& entry : request.suite.entries) {
    const auto ran = std::ranges::count(request.cases, &entry, &Selected::entry);
    if (!entry.pairs || ran < std::ssize(entry.cases)) continue;
    covered += entry.covered, legal += entry.legal;
  }
  return legal == 0 ? "" : fmt::format("covered  {} of {} legal pairs\n", covered, legal);
}

/// `earlier`: the record that each case has already.
ExitCode work(const Request& request, const Environment& here, std::span<const std::optional<Record>> earlier,
              RunFolder& folder) {
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  Progress progress;
  std::size_t done = 0;
  std::size_t idle = 0, unmet = 0, failures = 0;
  std::string unmet_reason;
  bool refused_alone = false;  // a case on the command line has no manifest that expects it
  std::deque<Case> random_cases;
  std::vector<Selected> left;
  for (std::size_t k = 0; k < request.cases.size(); ++k) {
    if (earlier[k]) tally.add(request.cases[k], {.record = *earlier[k], .code = ExitCode::pass}), ++done;
    if (!earlier[k]) left.push_back(request.cases[k]);
  }
  std::vector<std::pair<Selected, Checked>> failed;  // the first ones
  const auto ended = [&](const Selected& selected, const Checked& as_judged) {
    Checked checked = as_judged;
    Record& record = checked.record;
    if (request.random && record.verdict == Verdict::mistrusted) {  // a draw that can show nothing is left out
      record.verdict = Verdict::skipped;
      checked.code = ExitCode::pass;
      ++idle;
    }
    const bool alone = request.suite.name.empty() && !request.random;
    if (checked.met_no_call && !alone) {
      record.verdict = Verdict::skipped;
      checked.code = ExitCode::pass;
      ++unmet, unmet_reason = record.reason;
    }
    folder.add(record);
    tally.add(selected, checked);
    ++done;
    progress.show(request.random || request.exhaustive ? fmt::format("{} cases", done)
                                                       : fmt::format("{} of {} cases", done, request.cases.size()));
    const bool unsupported = record.verdict == Verdict::unsupported;
    const bool refused = unsupported && selected.entry->unsupported > 0;
    refused_alone = unsupported && alone;
    if (record.verdict == Verdict::pass || record.verdict == Verdict::skipped || refused) return;
    progress.clear();
    say(stderr,
        printable(fmt::format("{} ({}): {}: {}\n{}", name_of(record.verdict), selected.entry->name, record.case_text,
                              record.reason, unsupported ? "" : fmt::format("rerun: {}\n", record.rerun))));
    if (unsupported || checked.code == ExitCode::usage) return;
    ++failures;
    if (request.shrink && std::ssize(failed) < most_shrunk) failed.emplace_back(selected, checked);
  };
  const std::string results = fmt::format("results  {}\n", folder.path().string());
  try {
    check_all(source_of(request, left, random_cases), request.threads, here, ended, request.options);
    progress.clear();
    for (std::size_t k = 0; k < failed.size(); ++k)
      say_smallest(failed[k].first, failed[k].second, request, fmt::format("{} of {}", k + 1, failures));
  } catch (const Interrupted&) {
    progress.clear();
    say(stdout, tally.report() + results);
    if (!request.random)
      say(stderr, printable(fmt::format("to go on: {}\n", request.folder.resuming_line(request.args, folder))));
    throw;
  }
  for (const auto& sentence : refused_alone ? std::vector<std::string>() : tally.unexpected())
    say(stderr, printable("fail: " + sentence + "\n"));
  for (const auto& sentence : tally.split()) say(stderr, printable("fail: " + sentence + "\n"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say(stdout, tally.report() + coverage(request) + fmt::format("seconds  {:.1f}\n", seconds) + results);
  ExitCode code = refused_alone ? ExitCode::usage : tally.code();
  if (unmet > 0 && unmet == done) {
    say(stderr, printable(fmt::format("fail: {} skipped: {}\n", counted(done, "case"), unmet_reason)));
    code = worst({code, ExitCode::usage});
  }
  if (100 * idle > done + 100) {
    say(stderr, fmt::format("fail: {} of {} random cases could show nothing; at most 1 in 100 may\n", idle, done));
    code = worst({code, ExitCode::check_failed});
  }
  return std::ferror(stdout) ? worst({code, ExitCode::write_failed}) : code;
}

/// The first ones of an exhaustive run, down to the last of which it holds a record. Few are without one, for those
/// that did not pass run again first: where they are most by far, the records are taken for those of another run.
void take_begun(Request& request, std::span<const Record> records) {
  const std::size_t most = 100 * records.size() + 1000;
  std::multiset<std::string> missing;
  for (const auto& record : records) missing.insert(record.case_text);
  while (!missing.empty() && request.cases.size() < most) {
    const auto selected = request.exhaustive->next();
    if (!selected) break;
    request.cases.push_back(*selected);
    if (const auto found = missing.find(print(*selected->value)); found != missing.end()) missing.erase(found);
  }
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  if (request.list) {
    for (const auto& selected : request.cases)
      fmt::print("{}", printable(listed(*selected.value, selected.entry->name) + "\n"));
    while (const auto selected = request.exhaustive ? request.exhaustive->next() : std::nullopt)
      fmt::print("{}", printable(listed(*selected->value, selected->entry->name) + "\n"));
    return ExitCode::pass;
  }
  const Environment here = environment();
  RunFolder folder = request.folder.open();
  if (request.exhaustive) {
    say(stderr, printable(request.exhaustive->sizes()));
    take_begun(request, folder.earlier());
  }
  const auto key_of = [&](std::size_t k) {
    const Selected& s = request.cases[k];
    return CaseKey{.case_text = print(*s.value),
                   .rerun = rerun_of(*s.value, s.entry->shows, request.options),
                   .workload_hash = [value = s.value] { return workload_hash_of(*value); }};
  };
  const auto earlier = resume(folder, request.cases.size(), key_of, here);
  keep_flight_in(folder.path());
  return folder.run(rerun_line(request.args), [&] { return work(request, here, earlier, folder); });
}

}  // namespace

const Command check_command = {"check", "Judges the cases of a suite by the oracle; measures nothing",
                               "shardproof check --suite one_device --filter 'tiny*' --track exact", run};

}  // namespace shardproof::harness
