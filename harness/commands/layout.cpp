// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/layout.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/parse_file.hpp"
#include "harness/run_report.hpp"
#include "harness/text.hpp"
#include "impl/plan/plan.hpp"
#include "impl/plan/strategy_table.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

extern const Command layout_command;

namespace {

/// The lines of a layout's text by their first word, with single blanks.
std::map<std::string, std::string> lines_of(const plan::Layout& layout) {
  std::map<std::string, std::string> lines;
  std::istringstream text(plan::print(layout));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    lines[all.front()] = workload::joined(all, " ");
  }
  return lines;
}

/// Prints the first lines that differ, and how many do.
ExitCode compare(const std::string& path, const plan::Layout& expected) {
  const plan::Layout given = parse_file(path, plan::parse_layout);
  if (given == expected) {
    fmt::print("{}: the same\n", path);
    return ExitCode::pass;
  }
  auto theirs = lines_of(given), own = lines_of(expected);
  std::vector<std::string> names;  // in the order of the text, the file's own ones last
  for (const plan::Layout* layout : {&expected, &given}) {
    std::istringstream text(plan::print(*layout));
    for (std::string line; std::getline(text, line);) {
      const auto name = line.substr(0, line.find(' '));
      if (theirs[name] != own[name] && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  if (names.empty()) {
    fmt::print("{}: its parameters stand in another order\n", path);
    return ExitCode::check_failed;
  }
  const auto shown = [&](const std::string& line) { return line.empty() ? names.front() + " is missing" : line; };
  fmt::print("{}: {} of {} lines differ; the first:\n  the file:      {}\n  the strategy:  {}\n", path, names.size(),
             own.size(), printable(shown(theirs[names.front()])), shown(own[names.front()]));
  return ExitCode::check_failed;
}

/// Every key, whether it is legal, and what would be.
ExitCode explain(const plan::Strategy& strategy, const workload::Workload& w, std::optional<std::int64_t> ranks) {
  const auto refusals = plan::refusals(strategy, w, ranks);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string_view key, const std::string& text, const std::string& legal) {
    const auto refused = std::ranges::find(refusals, key, &plan::Refusal::key);
    rows.push_back({text, refused == refusals.end() ? legal : "refused: " + refused->reason});
  };
  if (ranks) add("ranks", fmt::format("ranks {}", *ranks), "legal");
  for (const plan::KeyRow& row : plan::strategy_table())
    add(row.name, plan::written(row, strategy), plan::is_standard(row, strategy) ? "legal, the default" : "legal");
  if (!refusals.empty())
    rows.push_back({"nearest legal strategy", plan::print(plan::nearest_legal(strategy, w, ranks))});
  fmt::print("{}", table(rows));
  return refusals.empty() ? ExitCode::pass : ExitCode::usage;
}

/// "0,3 1,2": of the first ranks, where there are many.
std::string stages_by_rank(const plan::Strategy& strategy, std::int64_t steps) {
  constexpr std::int64_t shown = 64;
  const plan::Placement placement = plan::pipeline_of(strategy, steps).placement;
  std::string text;
  const std::int64_t ranks = strategy.pipeline_ranks();
  for (std::int64_t pp = 0; pp < std::min(ranks, shown); ++pp)
    text += fmt::format("{}{}", pp > 0 ? " " : "", fmt::join(placement.stages_of(pp), ","));
  return ranks > shown ? text + " ..." : text;
}

/// What the text does not say by itself; comments, where it is parsed back.
std::string legend(const plan::Strategy& strategy, std::int64_t steps) {
  const plan::Mesh mesh = plan::mesh_of(strategy);
  const auto stride = [&](std::int64_t pp, std::int64_t dp, std::int64_t tp) {
    return static_cast<int>(
        mesh.rank_at({strategy.pipeline_ranks() > 1 ? pp : 0, strategy.dp > 1 ? dp : 0, strategy.tp > 1 ? tp : 0}));
  };
  return fmt::format(
      "# rank = {} x pipeline rank + {} x data rank + {} x tensor rank; data ranks hold the same\n"
      "# stages of each pipeline rank: {}\n"
      "# ranges are begin:end, one of each stage in stage_layers, else one of each tensor rank\n"
      "# split: the dim that is cut; held: what a tensor rank holds of it (key/value heads may be held twice)\n"
      "# owned: what it counts in norms and files; held: just that, tp0: tensor rank 0 counts all\n"
      "# sites: STAGE:PART that uses it, on each of which stages there is a copy\n",
      stride(1, 0, 0), stride(0, 1, 0), stride(0, 0, 1), stages_by_rank(strategy, steps));
}

ExitCode run(std::span<const std::string> args) {
  std::vector<std::string> words, settings;
  std::string workload, file;
  std::optional<std::int64_t> ranks;
  bool why = false;
  Options options(layout_command);
  options.words(words, "STRATEGY", "How the workload is spread, as 'dp2 tp2' (list --strategies)")
      .text("--workload", workload, "NAME|FILE", "What is trained: a built-in name (list --workloads) or a JSON file")
      .list("--set", settings, "KEY=VALUE", "Changes a key of the workload (list --keys); may be repeated")
      .number("--ranks", ranks, 1, std::int64_t{1} << 31,
              "The axes must multiply to it; an axis written dp* takes the rest of it")
      .text("--check", file, "FILE", "Compare this layout with the strategy's instead")
      .flag("--why", why, "Say of every key of the strategy whether it is legal, and why not, instead");
  if (!options.parse(args)) return ExitCode::pass;
  if (words.empty()) throw BadInput("the strategy is missing: as 'dp2 tp2' (list --strategies)");
  if (workload.empty()) throw BadInput("--workload is missing: a name (list --workloads) or a JSON file");

  const workload::Workload w = workload::load(workload, settings);
  const auto strategy = plan::parse_strategy(fmt::format("{}", fmt::join(words, " ")), ranks);
  if (why && !file.empty()) throw BadInput("--why and --check exclude each other");
  if (why) return explain(strategy, w, ranks);
  plan::require_legal(strategy, w, ranks);
  const plan::Layout layout = plan::layout(w, strategy);
  if (!file.empty()) return compare(file, layout);
  if (const std::string warning = stages_warning(w, strategy); !warning.empty())
    say(stderr, printable(fmt::format("shardproof: warning: {}\n", warning)));
  fmt::print("# {} on {}: mesh pp{} dp{} tp{}\n{}{}", w.name, plan::print(strategy), strategy.pipeline_ranks(),
             strategy.dp, strategy.tp, legend(strategy, w.steps), plan::print(layout));
  return ExitCode::pass;
}

}  // namespace

const Command layout_command = {"layout",
                                "Prints which rank holds which part of every parameter, or why a strategy is refused",
                                "shardproof layout 'dp2 tp2' --workload tiny", run};

}  // namespace shardproof::harness
