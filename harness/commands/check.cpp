// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/environment.hpp"
#include "harness/options.hpp"
#include "harness/progress.hpp"
#include "harness/run_folder.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

extern const Command check_command;

namespace {

struct Request {
  Suite suite;
  std::vector<Selected> cases;
  std::int64_t threads = 1;
  std::string out, rerun;
  bool overwrite = false, list = false;
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
  std::vector<std::string> words, shows;
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
      .number("--seed", seed, 0, most, "Other random workloads than the suite's")
      .shard(selection.shard, selection.shards)
      .flag("--list", request.list, "Print the cases and run nothing")
      .number("--threads", threads, 1, 64, "Cases that run at the same time (default: 2, or 1 on one core)")
      .text("--out", request.out, "FOLDER", "Where results go (default: results/runs/ and the time)")
      .flag("--overwrite", request.overwrite, "Replace the run that the folder holds");
  if (!options.parse(args)) return false;
  if (words.empty() == suite.empty()) throw BadInput("either --suite or a case must be given");
  if (suite.empty() && (seed || !selection.filters.empty() || selection.track || selection.shards > 1)) {
    throw BadInput("--filter, --track, --seed and --shard choose from a --suite; a case was given");
  }
  if (!suite.empty() && !shows.empty()) throw BadInput("--shows belongs to a case; entries of a suite have their own");
  request.suite = suite.empty()
                      ? suite_of(words, shows)
                      : load_suite(suite, seed ? std::optional(static_cast<std::uint64_t>(*seed)) : std::nullopt);
  request.cases = select(request.suite, selection);
  request.threads = threads.value_or(std::min<std::int64_t>(2, std::max(1u, std::thread::hardware_concurrency())));
  std::vector<std::string> line = {"check"};
  line.insert(line.end(), args.begin(), args.end());
  request.rerun = rerun_line(line);
  return true;
}

ExitCode work(const Request& request, RunFolder& folder) {
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  Progress progress;
  std::size_t done = 0;
  check_all(request.cases, request.threads, environment(), [&](const Selected& selected, const Checked& checked) {
    const Record& record = checked.record;
    folder.add(record);
    tally.add(selected, checked);
    progress.show(fmt::format("{} of {} cases", ++done, request.cases.size()));
    const bool refused = record.verdict == Verdict::unsupported && selected.entry->unsupported > 0;
    if (record.verdict == Verdict::pass || refused) return;
    progress.clear();
    fmt::print(stderr, "{} ({}): {}: {}\nrerun: {}\n", name_of(record.verdict), selected.entry->name, record.case_text,
               record.reason, record.rerun);
  });
  progress.clear();
  for (const auto& sentence : tally.unexpected()) fmt::print(stderr, "fail: {}\n", sentence);
  fmt::print("{}", tally.report());
  fmt::print("seconds  {:.1f}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  fmt::print("results  {}\n", folder.path().string());
  return tally.code();
}

ExitCode run(std::span<const std::string> args) {
  Request request;
  if (!parse(args, request)) return ExitCode::pass;
  if (request.list) {
    for (const auto& selected : request.cases) fmt::print("{}  ({})\n", print(*selected.value), selected.entry->name);
    return ExitCode::pass;
  }
  RunFolder folder(request.out, request.overwrite);
  return folder.run(request.rerun, [&] { return work(request, folder); });
}

}  // namespace

const Command check_command = {"check", "Judges the cases of a suite by the oracle; measures nothing",
                               "shardproof check --suite one_device --filter 'tiny*' --track exact", run};

}  // namespace shardproof::harness
