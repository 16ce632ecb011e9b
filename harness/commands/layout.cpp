// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/layout.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/parse_file.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {

extern const Command layout_command;

namespace {

/// Names the first parameter that differs.
ExitCode compare(const std::string& path, const plan::Layout& expected) {
  const plan::Layout given = parse_file(path, plan::parse_layout);
  if (given == expected) {
    fmt::print("{}: the same\n", path);
    return ExitCode::pass;
  }
  const auto differs = std::ranges::mismatch(given.parameters, expected.parameters);
  const bool has_given = differs.in1 != given.parameters.end(), has_expected = differs.in2 != expected.parameters.end();
  if (!has_given && !has_expected) {
    fmt::print("{}: layers, heads, columns or vocabulary are cut in another way\n", path);
  } else {
    const plan::ParameterLayout& parameter = has_expected ? *differs.in2 : *differs.in1;
    fmt::print("{}: differs at {}{}\n", path, parameter.parameter.name,
               !has_given      ? ", which it does not have"
               : !has_expected ? ", which the workload does not have"
                               : "");
  }
  return ExitCode::check_failed;
}

ExitCode run(std::span<const std::string> args) {
  std::vector<std::string> words, settings;
  std::string workload, file;
  std::optional<std::int64_t> ranks;
  Options options(layout_command);
  options.words(words, "STRATEGY", "How the workload is spread, as 'dp2 tp2' (list --strategies)")
      .text("--workload", workload, "NAME|FILE", "What is trained: a built-in name (list --workloads) or a JSON file")
      .list("--set", settings, "KEY=VALUE", "Changes a key of the workload (list --keys); may be repeated")
      .number("--ranks", ranks, 1, std::int64_t{1} << 31,
              "The axes must multiply to it; an axis written dp* takes the rest of it")
      .text("--check", file, "FILE", "Compare this layout with the strategy's instead");
  if (!options.parse(args)) return ExitCode::pass;
  if (words.empty()) throw BadInput("the strategy is missing: as 'dp2 tp2' (list --strategies)");
  if (workload.empty()) throw BadInput("--workload is missing: a name (list --workloads) or a JSON file");

  const workload::Workload w = workload::load(workload, settings);
  const auto strategy = plan::parse_strategy(fmt::format("{}", fmt::join(words, " ")), ranks);
  plan::require_legal(strategy, w, ranks);
  const plan::Layout layout = plan::layout(w, strategy);
  if (!file.empty()) return compare(file, layout);
  fmt::print("# {} on {}: mesh pp{} dp{} tp{}\n{}", w.name, plan::print(strategy), strategy.pp, strategy.dp,
             strategy.tp, plan::print(layout));
  return ExitCode::pass;
}

}  // namespace

const Command layout_command = {"layout", "Prints which rank holds which part of every parameter",
                                "shardproof layout 'dp2 tp2' --workload tiny", run};

}  // namespace shardproof::harness
