// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/properties.hpp"
#include "harness/suite.hpp"
#include "harness/text.hpp"
#include "impl/comm/inject.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
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

std::vector<Suite> every_suite() {
  std::vector<Suite> suites;
  for (const std::string& name : suite_names()) suites.push_back(load_suite(name));
  return suites;
}

/// Throws BadInput for an unknown property.
Rows entries_with(const std::string& id) {
  std::vector<std::string> ids;
  Rows rows;
  for (const Coverage& one : coverage(every_suite())) {
    ids.emplace_back(one.property->id);
    if (ids.back() != id) continue;
    for (const std::string& entry : one.entries) rows.push_back({"  " + entry});
    return rows;
  }
  throw BadInput("--property: " + unknown("property", id, ids));
}

/// Throws InternalError for a property without a case where nothing is missing.
Rows properties_of_cases() {
  Rows rows;
  std::string missing;
  for (const Coverage& one : coverage(every_suite())) {
    std::string what = one.cases > 0 ? fmt::format("{} in {}", counted(one.cases, "case"), one.entries.size()) : "";
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

Rows schedules() {
  Rows rows;
  for (const auto* generator : plan::schedules()) {
    const std::string alias = generator->alias.empty() ? "" : fmt::format(" ({})", generator->alias);
    rows.push_back({fmt::format("  {}{}", generator->name, alias), std::string(generator->meaning),
                    std::string(generator->paper)});
  }
  return rows;
}

/// With the fields that are theirs alone.
Rows faults() {
  Rows rows;
  const auto known = comm::fault_rows();
  for (std::size_t k = 0; k < known.size(); ++k) {
    std::string own;
    for (const comm::FaultField& field : comm::fault_fields()) {
      if (field.of_calls || field.faults.empty() || !comm::takes(static_cast<comm::Fault>(k), field)) continue;
      own += fmt::format("{}{}{}{}", own.empty() ? "" : ",", field.name, field.standard.empty() ? "" : "=",
                         field.standard);
    }
    rows.push_back({"  " + std::string(known[k].name), own, std::string(known[k].meaning)});
  }
  return rows;
}

Rows fault_fields() {
  Rows rows;
  for (const comm::FaultField& field : comm::fault_fields()) {
    std::string of = field.of_calls ? " (not slow" : "";
    for (const comm::Fault fault : field.faults)
      of += fmt::format("{}{}", of.empty() ? " (" : ", ", comm::fault_rows()[static_cast<std::size_t>(fault)].name);
    rows.push_back({"  " + field.name, field.values, field.meaning + (of.empty() ? "" : of + ")")});
  }
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
      {"--schedules", "Pipeline schedules", "What `schedule` and --strategy can name: what each does, and its paper",
       schedules},
      {"--properties", "Properties of inputs", "How many cases have the properties that reveal known faults",
       properties_of_cases, false, false},
      {"--faults",
       "Faults of --inject, as scale:axis=dp,kind=all_reduce,rank=1,call=2, with their own fields and defaults",
       "What --inject does, and its fields", faults, false, false},
      {nullptr, "Their fields; all faults have those without a fault's name", "", fault_fields, false, false},
      {"--keys", "Workload keys", "Keys of workload files and of --set", keys},
  };
  bool example = false;
  std::string property;
  Options options(list_command);
  for (Section& section : sections)
    if (section.option != nullptr) options.flag(section.option, section.wanted, section.help);
  options.text("--property", property, "ID", "The entries that have one of them")
      .flag("--example", example, "Print a workload file with every key, and nothing else");
  if (!options.parse(args)) return ExitCode::pass;
  for (std::size_t k = 1; k < std::size(sections); ++k)  // one without an option goes with that above it
    if (sections[k].option == nullptr) sections[k].wanted = sections[k - 1].wanted;

  if (example) {  // alone, whatever else is asked for, so that it can go into a file
    fmt::print("{}", workload::print(workload::load("tiny")));
    return ExitCode::pass;
  }
  bool all = property.empty();
  for (const Section& section : sections) all = all && !section.wanted;
  for (const Section& section : sections)
    if ((all && section.always) || section.wanted) fmt::print("{}\n{}", section.title, table(section.rows()));
  if (!property.empty()) fmt::print("Entries with {}\n{}", property, table(entries_with(property)));
  return ExitCode::pass;
}

}  // namespace

const Command list_command = {"list", "What there is: workloads, suites, tracks, strategies, properties, faults, keys",
                              "shardproof list --workloads", run};

}  // namespace shardproof::harness
