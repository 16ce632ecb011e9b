// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/schedule_grid.hpp"
#include "harness/schedule_options.hpp"
#include "harness/schedule_papers.hpp"
#include "harness/schedule_svg.hpp"
#include "harness/schedule_trace.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

extern const Command schedule_command;

namespace {

/// "FILE: line 3, column 9: 1B0 comes before 1F0", of a file; of a generator "rank 2: ...".
std::string place_of(const NamedSchedule& named, const plan::ScheduleFinding& finding) {
  if (named.columns.empty()) return plan::texts_of({finding}).front();
  if (finding.rank < 0) return fmt::format("{}: {}", named.title, finding.text);
  std::string place = fmt::format("{}: line {}", named.title, finding.rank + 1);
  if (finding.at >= 0)
    place += fmt::format(", column {}",
                         named.columns[static_cast<std::size_t>(finding.rank)][static_cast<std::size_t>(finding.at)]);
  return fmt::format("{}: {}", place, finding.text);
}

/// False, with every finding said, where it is not proven.
bool proven(const NamedSchedule& named) {
  const auto found = plan::prove(named.schedule, named.extent);
  for (const plan::ScheduleFinding& finding : found) say(stderr, printable(place_of(named, finding) + "\n"));
  return found.empty();
}

void print_figures(const NamedSchedule& named, const plan::Timeline& line) {
  const plan::Schedule& schedule = named.schedule;
  const plan::ScheduleIndex index(schedule, named.extent);
  const std::string of_slices =
      named.extent.slices == 0 ? "" : fmt::format(", {}", counted(named.extent.slices, "slice"));
  fmt::print("{}, {}, {} microbatch{}{}\n", counted(schedule.ranks.size(), "rank"),
             counted(named.extent.stages, "stage"), named.extent.microbatches,
             named.extent.microbatches == 1 ? "" : "es", of_slices);
  fmt::print("sends ahead of their receivers: {}\n", schedule.send_depth);
  fmt::print("peak in flight by rank: {}\n", fmt::join(plan::peak_in_flight(schedule), " "));
  if (schedule.weights != plan::WeightRule::flushed)
    fmt::print("versions of weights by rank: {}\n", fmt::join(plan::weight_versions(schedule, index).most_kept, " "));
  fmt::print("makespan {:.6g}\n", line.makespan);
  fmt::print(
      "bubble {:.4g} (idle time of all ranks over their busy time), {:.4g} of all ranks' time, {:.4g} of a rank's "
      "longest span\n",
      line.bubble_overhead(), line.bubble_fraction(), line.bubble_of_span());
}

ExitCode check_all_shapes() {
  const auto start = std::chrono::steady_clock::now();
  const ScheduleGrid grid = check_grid();
  std::vector<std::vector<std::string>> rows = {{"schedule", "proven"}};
  for (const auto& [name, count] : grid.proven) rows.push_back({name, fmt::format("{}", count)});
  fmt::print("{}\n", table(rows));
  std::int64_t refused = 0;
  rows = {{"refused", "shapes"}};
  for (const auto& [why, count] : grid.refused) rows.push_back({why, fmt::format("{}", count)}), refused += count;
  fmt::print("{}\n", table(rows));
  std::int64_t proven = 0;
  for (const auto& [name, count] : grid.proven) proven += count;
  for (const std::string& failure : grid.failures) say(stderr, failure + "\n");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{} proven, each with three depths of sends, {} refused, {} not proven, {:.1f} s\n", proven, refused,
             grid.failures.size(), seconds.count());
  return grid.failures.empty() ? ExitCode::pass : ExitCode::check_failed;
}

ExitCode hold_to_papers() {
  const PaperReport report = paper_report(paper_cells(paper_schedules()));
  fmt::print("{}", report.text);
  return report.agree ? ExitCode::pass : ExitCode::check_failed;
}

ExitCode draw(const NamedSchedule& named, const plan::Timeline& line, const plan::ActionCosts& costs,
              const std::string& out) {
  const std::size_t most = out.empty() ? 10000 : 20000;
  std::size_t actions = named.schedule.ranks.size();  // a row each
  for (const auto& rank : named.schedule.ranks) actions += rank.size();
  if (actions > most)
    throw BadInput(fmt::format("draw: {} actions are too many{}, more than {}{}", actions,
                               out.empty() ? " for a terminal" : "", most, out.empty() ? ": --out" : ""));
  if (out.empty()) {
    fmt::print("{}\n{}", named.title, plan::picture(named.schedule));
    return ExitCode::pass;
  }
  write_file(out, out.ends_with(".json") ? schedule_trace(named.schedule, line, costs, named.title)
                                         : schedule_svg(named.schedule, line, named.title));
  fmt::print("{}\n", out);
  return ExitCode::pass;
}

ExitCode run(std::span<const std::string> args) {
  std::vector<std::string> words;
  ScheduleOptions shape;
  std::string out, suite;
  bool grid = false;
  Options options(schedule_command);
  options
      .words(words, "ACTION [SCHEDULE]",
             "print, check, draw or bubble; and a name of list --schedules, or a file, also as file:PATH")
      .flag("--grid", grid,
            "Of check: every schedule on 1 to 8 ranks, 1 to 2 ranks + 1 microbatches, 1 to 3 chunks and slices")
      .text("--suite", suite, "papers", "Of bubble: every published number beside ours")
      .text("--out", out, "FILE.svg",
            "Of draw: an SVG instead of text; of FILE.json a Chrome trace with messages, which scripts/plot.py draws")
      .notes(
          "An action is its stage, its kind and its microbatch, as 0F1, or 0F1.2 for a slice: F is a forward, I the "
          "gradient\nof the input, W those of the weights, B is I then W, U an update of the stage.");
  shape.declare(options);
  if (!options.parse(args)) return ExitCode::pass;
  const std::vector<std::string> actions = {"print", "check", "draw", "bubble"};
  if (words.empty() || std::ranges::find(actions, words[0]) == actions.end())
    throw BadInput(fmt::format("{}: what to do is one of {}", words.empty() ? "nothing named" : "\"" + words[0] + "\"",
                               workload::joined(actions, ", ")));
  const std::string& action = words[0];
  if (grid && action != "check") throw BadInput("--grid belongs to check");
  if (!suite.empty() && action != "bubble") throw BadInput("--suite belongs to bubble");
  if (!out.empty() && action != "draw") throw BadInput("--out belongs to draw");
  if (!suite.empty() && suite != "papers") throw BadInput(fmt::format("--suite: \"{}\" is not papers", suite));
  const bool all = grid || !suite.empty();
  if (words.size() != (all ? 1u : 2u))
    throw BadInput(all ? "--grid and --suite take no schedule: they are about all"
                       : fmt::format("{} takes one schedule: a name or a file", action));
  if (grid) return check_all_shapes();
  if (!suite.empty()) return hold_to_papers();

  const NamedSchedule named = shape.load(words[1]);
  const plan::ActionCosts costs = shape.costs();
  if (action == "print") {
    fmt::print("{}", plan::print(named.schedule));
    return ExitCode::pass;
  }
  if (!proven(named)) return ExitCode::check_failed;
  const plan::Timeline line = plan::timeline(named.schedule, costs);
  if (action == "draw") return draw(named, line, costs, out);
  print_figures(named, line);
  return ExitCode::pass;
}

}  // namespace

const Command schedule_command = {"schedule", "Prints, proves and draws pipeline schedules, by name or from a file",
                                  "shardproof schedule draw zb_h1 --ranks 4 --microbatches 8", run};

}  // namespace shardproof::harness
