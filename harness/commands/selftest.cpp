// SPDX-License-Identifier: Apache-2.0
#include "harness/selftest.hpp"

#include <chrono>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/disturbance.hpp"
#include "harness/options.hpp"
#include "harness/progress.hpp"
#include "harness/text.hpp"
#include "harness/transport.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

extern const Command selftest_command;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string text_of(const Finding& finding) {
  return finding.step > 0 ? fmt::format("step {}: {}", finding.step, finding.observable) : finding.observable;
}

/// Without a fault nothing may be found, nor when ranks are merely late.
bool finds_nothing(const std::vector<Case>& cases, Disturbance disturbance) {
  disturbance.injections = {"delay:ms=0.2"};
  for (const auto& value : cases) {
    const Finding finding = judged(value, disturbance);
    if (finding.observable.empty()) continue;
    fmt::print(stderr, "without a fault, {} finds {}\n", print(value), printable(text_of(finding)));
    return false;
  }
  return true;
}

ExitCode run(std::span<const std::string> args) {
  bool list = false;
  Options options(selftest_command);
  options.flag("--list", list, "Print the faults and run nothing");
  TimeoutOption timeout;
  timeout.declare(options);
  if (!options.parse(args)) return ExitCode::pass;
  const Disturbance disturbance{.timeout_seconds = timeout.seconds()};
  const auto faults = injected_faults(faults_file());
  if (list) {
    for (const auto& fault : faults) fmt::print("{}  {}  {}\n", fault.id, fault.inject, fault.text);
    return ExitCode::pass;
  }
  if (processes() != nullptr) throw BadInput("selftest: its ranks are threads of one process, without mpirun");
  const auto start = Clock::now();
  const auto cases = selftest_cases();
  if (!finds_nothing(cases, disturbance)) return ExitCode::check_failed;
  std::vector<std::vector<std::string>> rows = {{"id", "outcome", "expected", "seconds", "found by", "case"}};
  Progress progress;
  std::size_t good = 0;
  for (const auto& fault : faults) {
    progress.show(fmt::format("{} of {} faults", rows.size() - 1, faults.size()));
    const auto began = Clock::now();
    const Outcome outcome = plant(fault, cases, disturbance);
    good += outcome.caught && outcome.expected;
    rows.push_back({fault.id, outcome.caught ? "caught" : "survived", outcome.expected ? "yes" : "no",
                    fmt::format("{:.2f}", since(began)), printable(text_of(outcome.finding)), outcome.case_text});
  }
  progress.clear();
  fmt::print("{}", table(rows));
  fmt::print(
      "{} of {} faults caught as expected; nothing found without one, in {:.1f} s\n"
      "selftest --list and suites/faults.json say what each is\n",
      good, faults.size(), since(start));
  return good == faults.size() && !faults.empty() ? ExitCode::pass : ExitCode::check_failed;
}

}  // namespace

const Command selftest_command = {"selftest", "Plants faults in the communicator and demands that each is found",
                                  "shardproof selftest", run};

}  // namespace shardproof::harness
