// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/schedule_comparison.hpp"
#include "harness/schedule_grid.hpp"
#include "harness/schedule_options.hpp"
#include "harness/schedule_papers.hpp"
#include "harness/schedule_report.hpp"
#include "harness/schedule_svg.hpp"
#include "harness/schedule_trace.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
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

/// False, with every finding said, where it is not proven; and what would help, where all that is wrong is rendezvous.
bool proven(const NamedSchedule& named) {
  const auto found = plan::prove(named.schedule, named.extent);
  for (const plan::ScheduleFinding& finding : found) say(stderr, printable(place_of(named, finding) + "\n"));
  if (found.empty()) return true;
  plan::Schedule ahead = named.schedule;
  if (ahead.send_depth++ == 0 && plan::prove(ahead, named.extent).empty())
    say(stderr, "with sends that may be one message ahead of their receivers it is proven: --depth 1\n");
  return false;
}

ExitCode check_all_shapes() {
  const auto start = std::chrono::steady_clock::now();
  const ScheduleGrid grid = check_grid();
  std::vector<std::vector<std::string>> rows = {{"schedule", "proven"}};
  for (const auto& [name, count] : grid.proven) rows.push_back({name, fmt::format("{}", count)});
  fmt::print("{}\n", table(rows));
  std::int64_t refused = 0;
  // What several schedules refuse for one reason is one row; before the colon stands the value.
  struct Reason {
    std::int64_t shapes = 0;
    std::string example = {}, schedules = {};
  };
  std::map<std::string, Reason> reasons;
  for (const auto& [of, refusals] : grid.refused) {
    Reason& reason = reasons[refusals.why.substr(refusals.why.find(": ") + 1)];
    reason.shapes += refusals.shapes;
    if (reason.example.empty()) reason.example = refusals.why;
    reason.schedules += (reason.schedules.empty() ? "" : ", ") + of.schedule;
    refused += refusals.shapes;
  }
  rows = {{"refused", "as", "of"}};
  for (const auto& [text, reason] : reasons)
    rows.push_back({fmt::format("{}", reason.shapes), reason.example, reason.schedules});
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

/// Before the proof, which takes its time.
void refuse_large_drawing(const NamedSchedule& named) {
  constexpr std::size_t most = 20000;
  std::size_t actions = named.schedule.ranks.size();  // a row each
  for (const auto& rank : named.schedule.ranks) actions += rank.size();
  if (actions > most)
    throw BadInput(fmt::format("draw: {} actions and rows are too many for a drawing, more than {}", actions, most));
}

ExitCode draw(const NamedSchedule& named, const plan::Timeline& line, const plan::ActionCosts& costs,
              const std::string& out) {
  const std::string title = fmt::format("{}: {}", named.title, size_of(named));
  if (!out.empty()) {
    write_file(out, out.ends_with(".json") ? schedule_trace(named.schedule, line, costs, title)
                                           : schedule_svg(named.schedule, line, costs, title));
    fmt::print("{}\n", out);
    return ExitCode::pass;
  }
  constexpr double most = 100000;  // a terminal's line is not meant for more, nor is a person
  const double units = line.makespan * static_cast<double>(std::max<std::int64_t>(named.extent.slices, 1));
  const auto ranks = static_cast<double>(named.schedule.ranks.size());
  if (ranks * (units + 1) > most)
    throw BadInput(fmt::format("draw: {:.0f} ranks of {:.0f} units of time are more than {:.0f} for a terminal: --out",
                               ranks, units, most));
  fmt::print("{}\n{}", printable(title), plan::picture(named.schedule));
  const auto has_update = [](const std::vector<plan::Action>& actions) {
    return std::ranges::find(actions, plan::ActionKind::update, &plan::Action::kind) != actions.end();
  };
  if (std::ranges::any_of(named.schedule.ranks, has_update))
    fmt::print("U, which takes no time, is left out: --out draws it\n");
  return ExitCode::pass;
}

struct Asked {
  std::string action, out, suite;
  bool grid = false;
  bool all() const { return grid || !suite.empty(); }
};

/// Where an option of this use has an effect; "" where it has one.
std::string wanted(OptionUse use, const Asked& asked) {
  const bool timed = asked.action == "bubble" || (asked.action == "draw" && !asked.out.empty());
  switch (use) {
    case OptionUse::shape: return asked.all() ? "one schedule" : "";
    case OptionUse::proof:
      return asked.all() || asked.action == "print" ? "check, draw and bubble of one schedule" : "";
    case OptionUse::time: return asked.all() || !timed ? "bubble of one schedule, and draw with --out" : "";
  }
  return "";
}

/// Throws BadInput with every option that would have no effect, and what it goes with.
void refuse_unused(const Asked& asked, const ScheduleOptions& options) {
  std::string with = asked.action;
  if (asked.grid) with += " --grid";
  if (!asked.suite.empty()) with += " --suite";
  if (asked.action == "draw" && asked.out.empty()) with += " without --out";
  std::vector<std::string> findings;
  const auto unused = [&](std::string_view option, std::string_view goes_with) {
    findings.push_back(fmt::format("{} has no effect with {}: it goes with {}", option, with, goes_with));
  };
  if (asked.grid && asked.action != "check") unused("--grid", "check");
  if (!asked.suite.empty() && asked.action != "bubble") unused("--suite", "bubble");
  if (!asked.out.empty() && asked.action != "draw")
    unused("--out", "draw");
  else if (!asked.out.empty() && !asked.out.ends_with(".svg") && !asked.out.ends_with(".json"))
    findings.push_back(
        fmt::format("--out {}: it must end in .svg, or in .json for scripts/plot.py, which makes a PNG; "
                    "without --out a drawing is text",
                    asked.out));
  for (const auto& [option, use] : options.given())
    if (const std::string what = wanted(use, asked); !what.empty()) unused(option, what);
  if (!findings.empty()) throw BadInput(workload::joined(findings, "\n"));
}

ExitCode run(std::span<const std::string> args) {
  std::vector<std::string> words;
  ScheduleOptions shape;
  Asked asked;
  Options options(schedule_command);
  options
      .words(
          words, "ACTION [SCHEDULE]",
          "print; check, which proves it; draw; or bubble, the time it takes; and a name of list --schedules, or the "
          "path of a file, also as file:PATH (bubble without one compares all that have a name)")
      .flag("--grid", asked.grid,
            "Of check: every schedule on 1 to 8 ranks with up to 2p + 1 microbatches on p, and with all that it can "
            "have, "
            "as chunks, slices and replicas")
      .text("--suite", asked.suite, "papers", "Of bubble: what the papers say, in numbers and formulas, beside ours")
      .text("--out", asked.out, "FILE.svg",
            "Of draw: an SVG instead of text, at the costs and with messages and updates; of FILE.json a Chrome trace, "
            "which scripts/plot.py draws as PNG")
      .notes(
          "An action is its stage, its kind and its microbatch, as 0F1, or 0F1.2 for a slice: F is a forward, I the "
          "gradient\nof the input, W those of the weights, B is I then W, U an update of the stage. A file has a line "
          "per rank, of actions\nin their order, between them commas: \"0F0,0F1,0B0,0B1\". Which to choose: "
          "impl/plan/schedules/README.md.\n\nEach action once:\n"
          "  shardproof schedule print interleaved --ranks 2 --microbatches 4 --chunks 2\n"
          "  shardproof schedule check gpipe --ranks 4 --microbatches 8 --depth 0\n"
          "  shardproof schedule draw dualpipe --ranks 4 --microbatches 8 --overlapped --out dualpipe.svg\n"
          "  shardproof schedule bubble zb_h1 --ranks 4 --microbatches 8 --costs 1,1,1,0.2\n"
          "  shardproof schedule bubble --ranks 4 --microbatches 8");
  shape.declare(options);
  if (!options.parse(args)) return ExitCode::pass;
  const std::vector<std::string> actions = {"print", "check", "draw", "bubble"};
  if (words.empty() || std::ranges::find(actions, words[0]) == actions.end())
    throw BadInput(fmt::format("{}: what to do is one of {}", words.empty() ? "nothing named" : "\"" + words[0] + "\"",
                               workload::joined(actions, ", ")));
  const std::string& action = asked.action = words[0];
  refuse_unused(asked, shape);
  if (!asked.suite.empty() && asked.suite != "papers")
    throw BadInput(fmt::format("--suite: \"{}\" is not papers", asked.suite));
  const bool compares = action == "bubble" && words.size() == 1 && !asked.all();
  if (words.size() != (asked.all() || compares ? 1u : 2u))
    throw BadInput(asked.all() ? "--grid and --suite take no schedule: they are about all"
                               : fmt::format("{} takes one schedule: a name or a file{}", action,
                                             action == "bubble" ? ", or none, to compare all" : ""));
  if (asked.grid) return check_all_shapes();
  if (!asked.suite.empty()) return hold_to_papers();
  if (compares) {
    fmt::print("{}", schedule_comparison(shape));
    return ExitCode::pass;
  }

  const NamedSchedule named = shape.load(words[1]);
  const plan::ActionCosts costs = shape.costs(named);
  if (action == "print") {
    fmt::print("{}", plan::print(named.schedule));
    return ExitCode::pass;
  }
  if (action == "draw") refuse_large_drawing(named);
  if (!proven(named)) return ExitCode::check_failed;
  if (action == "check") {
    fmt::print("{}", proof_report(named));
    return ExitCode::pass;
  }
  const plan::Timeline line = timeline_of(named, costs);
  if (action == "draw") return draw(named, line, costs, asked.out);
  fmt::print("{}", bubble_report(named, costs, line));
  return ExitCode::pass;
}

}  // namespace

const Command schedule_command = {"schedule", "Prints, proves and draws pipeline schedules, by name or from a file",
                                  "shardproof schedule draw zb_h1 --ranks 4 --microbatches 8", run};

}  // namespace shardproof::harness
