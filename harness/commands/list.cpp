// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/properties.hpp"
#include "harness/suite.hpp"
#include "harness/text.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

extern const Command list_command;

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows workloads() {
  Rows rows;
  for (const workload::Workload& w : workload::built_in()) rows.push_back({"  " + w.name, w.why});
  return rows;
}

Rows suites() {
  Rows rows;
  for (const std::string& name : suite_names()) rows.push_back({"  " + name, load_suite(name).why});
  return rows;
}

/// Throws InternalError for a property without a case where nothing is missing.
Rows properties_of_cases() {
  std::vector<Suite> suites;
  for (const std::string& name : suite_names()) suites.push_back(load_suite(name));
  Rows rows;
  std::string missing;
  for (const Coverage& one : coverage(suites)) {
    std::string what =
        one.cases > 0 ? fmt::format("{}: {}", counted(one.cases, "case"), fmt::join(one.entries, " ")) : "";
    if (!one.not_yet.empty())
      what += fmt::format("{}not yet: {}", what.empty() ? "" : "; ", fmt::join(one.not_yet, ", "));
    rows.push_back({fmt::format("  {}", one.property->id), std::string(one.property->text), what});
    if (one.is_missing()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", one.property->id);
  }
  if (!missing.empty()) throw InternalError("properties that no case has, though nothing is missing: " + missing);
  return rows;
}

Rows tracks() {
  return {{"  exact", "fixed point in integers: every layout gives the same bits"},
          {"  f64", "double: for comparison with other frameworks"},
          {"  native", "float: throughput"}};
}

Rows strategies() {
  Rows rows;
  for (const plan::StrategyKey& key : plan::strategy_keys())
    rows.push_back(
        {"  " + key.name, key.values, "default " + key.standard, key.program ? "program" : "layout", key.meaning});
  return rows;
}

Rows keys() {
  Rows rows;
  for (const workload::KeyInfo& key : workload::keys())
    rows.push_back({"  " + key.name, key.type, "default " + key.standard, key.meaning});
  return rows;
}

ExitCode run(std::span<const std::string> args) {
  struct Section {
    const char *option, *title, *help;
    Rows (*rows)();
    bool wanted = false, always = true;  ///< printed where nothing is asked for
  } sections[] = {
      {"--workloads", "Workloads", "Built-in workloads", workloads},
      {"--suites", "Suites", "Built-in suites of cases", suites},
      {"--tracks", "Tracks", "What carries a run's numbers", tracks},
      {"--strategies", "Strategy keys", "Keys of --strategy", strategies},
      {"--properties", "Properties of inputs", "Which cases have the properties that reveal known faults",
       properties_of_cases, false, false},
      {"--keys", "Workload keys", "Keys of workload files and of --set", keys},
  };
  bool example = false;
  Options options(list_command);
  for (Section& section : sections) options.flag(section.option, section.wanted, section.help);
  options.flag("--example", example, "Print a workload file with every key");
  if (!options.parse(args)) return ExitCode::pass;

  bool all = !example;
  for (const Section& section : sections) all = all && !section.wanted;
  for (const Section& section : sections)
    if ((all && section.always) || section.wanted) fmt::print("{}\n{}", section.title, table(section.rows()));
  if (example) fmt::print("{}", workload::print(workload::load("tiny")));
  return ExitCode::pass;
}

}  // namespace

const Command list_command = {"list", "What there is: workloads, tracks, keys", "shardproof list --workloads", run};

}  // namespace shardproof::harness
