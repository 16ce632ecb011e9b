// SPDX-License-Identifier: Apache-2.0
#include "harness/case_options.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/json_fields.hpp"
#include "harness/suite.hpp"
#include "harness/text.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

/// Gives the case its job, or the reason why it has none.
RunCase planned(const Case& value, std::optional<std::int64_t> device_memory, bool planned_only) {
  RunCase result{.value = value};
  try {
    TrainingJob job{.workload = workload::load(value.workload, value.settings), .track = value.track};
    job.strategy = plan::parse_strategy(value.strategy, value.ranks);
    result.value.strategy = plan::print(job.strategy);
    if (!planned_only) require_threads(job.strategy);
    plan::require_legal(job.strategy, job.workload, value.ranks);
    job.workload = plan::with_program_keys(job.workload, job.strategy);
    if (device_memory) job.device_memory_bytes = *device_memory;
    result.job = std::move(job);
  } catch (const NotSupported& error) {
    result.refusal = error.what();
  }
  return result;
}

}  // namespace

std::vector<std::string> RunCase::words() const {
  std::vector<std::string> words = {"--workload", value.workload, "--track", std::string(name_of(value.track)),
                                    "--strategy", value.strategy};
  for (const std::string& setting : value.settings) words.insert(words.end(), {"--set", setting});
  if (job && job->device_memory_bytes != MemoryLedger::unlimited)
    words.insert(words.end(), {"--device-memory", std::to_string(job->device_memory_bytes)});
  return words;
}

void CaseOptions::declare(Options& options) {
  named_.declare(options,
                 fmt::format("What carries the numbers (default: {}, or the suite's)", name_of(Track::native)));
  options
      .text("--suite", suite_, "NAME|FILE",
            "Measure the cases of a suite: a name (" + workload::joined(suite_names(), ", ") + ") or a JSON file")
      .list("--strategy", strategies_, "TEXT",
            "How it is spread, as 'dp1 microbatches=4' (list --strategies); may be repeated: the cases are compared")
      .text("--devices", devices_, "N,N,...",
            "Each strategy on so many ranks; an axis written dp* takes the rest of them")
      .list("--filter", filters_, "PATTERN", "Only these cases of a suite; '*' is any characters; may be repeated")
      .shard(shard_, shards_)
      .number("--repeat", repeat_, 1, 1000, "Measure all cases so many times, one after the other");
}

std::vector<std::int64_t> CaseOptions::devices() const {
  std::vector<std::int64_t> counts;
  std::string_view rest = devices_;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto count = parse_number<std::int64_t>(rest.substr(0, comma));
    if (!count || *count < 1 || comma + 1 == rest.size())
      throw BadInput(fmt::format("--devices: \"{}\" is not a list of numbers from 1, as 1,2,4", devices_));
    counts.push_back(*count);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return counts;
}

/// The suite's own, with what the command line puts in place of their workload, track and settings.
std::vector<Case> CaseOptions::of_suite() const {
  if (!strategies_.empty()) throw BadInput("--suite has strategies of its own: --strategy cannot be given too");
  const Suite suite = load_suite(suite_);
  const auto counts = devices();
  std::vector<Case> cases;
  for (const Entry& entry : suite.entries) {
    for (Case value : entry.cases) {
      if (!counts.empty() && std::ranges::find(counts, value.ranks) == counts.end()) continue;
      if (!named_.workload.empty()) value.workload = named_.workload;
      if (named_.track) value.track = *named_.track;
      for (const auto& setting : named_.settings()) {  // in place of the case's own
        const auto key = setting.substr(0, setting.find('=') + 1);
        std::erase_if(value.settings, [&](const std::string& own) { return own.starts_with(key); });
        value.settings.push_back(setting);
      }
      const auto wanted = [&](const std::string& pattern) { return selects(pattern, entry.name, value); };
      if (filters_.empty() || std::ranges::any_of(filters_, wanted)) cases.push_back(std::move(value));
    }
  }
  return cases;
}

std::vector<Case> CaseOptions::of_strategies(bool planned_only) const {
  if (named_.workload.empty())
    throw BadInput("--workload is missing: a name (list --workloads) or a JSON file; or name a --suite");
  if (!filters_.empty()) throw BadInput("--filter belongs to a --suite");
  std::vector<std::string> findings;
  const auto attempt = [&](const std::string& option, const auto& work) {
    try {
      work();
    } catch (const BadInput& error) {
      findings.push_back(option + error.what());
    }
  };
  attempt("", [&] { workload::load(named_.workload, named_.settings()); });
  std::vector<std::optional<std::int64_t>> counts;
  attempt("", [&] {
    for (const auto count : devices()) counts.emplace_back(count);
  });
  if (counts.empty()) counts.emplace_back();
  std::vector<Case> cases;
  for (const std::string& text : strategies_.empty() ? std::vector<std::string>{"dp1"} : strategies_) {
    std::int64_t fits = 0;  // to so many counts
    for (const auto& count : counts) {
      const std::size_t before = findings.size();
      attempt("--strategy: ", [&] {
        Case value{.workload = named_.workload,
                   .settings = named_.settings(),
                   .strategy = text,
                   .ranks = count.value_or(1),
                   .track = named_.track.value_or(Track::native)};
        try {
          const auto strategy = plan::parse_strategy(text, count);
          if (!planned_only) require_threads(strategy);
          value.ranks = strategy.ranks();
          if (count && value.ranks != *count) return;
        } catch (const NotSupported&) {  // dp* that leaves a rest: it is refused when its turn comes
        }
        ++fits;
        cases.push_back(std::move(value));
      });
      if (findings.size() > before) break;  // the same on every count
      if (&count == &counts.back() && fits == 0)
        findings.push_back(fmt::format("--strategy: {} needs {}: --devices {} has no such number", text,
                                       counted(plan::parse_strategy(text).ranks(), "rank"), devices_));
    }
  }
  throw_findings(findings);
  return cases;
}

std::vector<RunCase> CaseOptions::cases(bool planned_only) const {
  const auto named = suite_.empty() ? of_strategies(planned_only) : of_suite();
  std::vector<RunCase> once;
  std::set<std::string> seen;
  for (const Case& value : named) {
    RunCase one = planned(value, named_.device_memory, planned_only);
    if (seen.insert(print(one.value)).second) once.push_back(std::move(one));
  }
  std::vector<RunCase> all;
  for (std::int64_t r = 0; r < repeat_.value_or(1); ++r)
    for (std::int64_t k = shard_ - 1; k < std::ssize(once); k += shards_)
      all.push_back(once[static_cast<std::size_t>(k)]);
  if (all.empty())
    throw BadInput(named.empty()
                       ? "no case is selected: none has the number of --devices, or none matches --filter"
                       : fmt::format("--shard {}/{}: of {} cases none is left", shard_, shards_, once.size()));
  return all;
}

}  // namespace shardproof::harness
