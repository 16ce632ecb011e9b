// SPDX-License-Identifier: Apache-2.0
// What reports are made of: the records of one or several runs, and what is read out of them in more than one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/record.hpp"
#include "harness/timeline.hpp"

namespace shardproof::harness {

struct ReportedCase {
  Record record = {};           ///< without its environment
  std::size_t environment = 0;  ///< of ReportData::environments
};

/// Median and quartiles of a figure; NaN where not measured.
struct Spread {
  double lower, median, upper;
  bool measured() const;
};
/// Of NAME_lower_quartile, NAME_median and NAME_upper_quartile.
Spread spread_of(const Record& record, const std::string& name);

/// Two kinds of throughput that are never mixed: measured by the wall clock, or by replay where each rank has its own
/// device.
enum class Rate { wall, replay };
Spread rate_of(const Record& record, Rate kind);

/// Median and quartiles of a / b from those of two independent quantities above 0.
Spread ratio(const Spread& a, const Spread& b);

/// A ranked case with all its runs: those that one line made, as --repeat does.
struct RepeatedCase {
  std::vector<std::size_t> runs = {};  ///< places in ReportData::cases
  /// The middle one of the runs' medians, and the outermost quartiles, so that runs that differ make a case hard to
  /// tell from others; NaN where some run was not measured.
  Spread wall = {}, replay = {};
  const Spread& rate(Rate kind) const { return kind == Rate::wall ? wall : replay; }
};

struct ReportedRun {
  std::string folder = {}, command = {};
  std::optional<std::int64_t> exit_code = {};  ///< none where the run did not end
};

class ReportData {
 public:
  /// Of the passing cases beyond so many, ledgers and forms stay in records.jsonl alone.
  static constexpr std::size_t most_with_ledgers = 2000;

  void add(const Record& record);

  std::vector<ReportedRun> runs = {};
  std::vector<Timeline> timelines = {};
  const std::vector<ReportedCase>& cases() const { return cases_; }
  const std::vector<Environment>& environments() const { return environments_; }
  /// In the order of their first runs.
  const std::vector<RepeatedCase>& repeated_cases() const { return repeated_; }
  const ReportedCase& first_of(const RepeatedCase& of) const { return cases_[of.runs.front()]; }
  /// The same in groups of what may be compared.
  std::vector<std::vector<const RepeatedCase*>> comparable_cases() const;
  /// More ranks than processors, which wall times then share.
  bool crowded(const ReportedCase& of) const;
  std::int64_t without_ledgers() const { return without_ledgers_; }

  /// Tokens/s per rank over those of one rank (the fastest comparable one that is ranked and undisturbed), with the
  /// spread of both; of that one rank itself with its own alone. NaN where either is missing.
  Spread efficiency(const ReportedCase& of, Rate kind) const;
  Spread efficiency(const RepeatedCase& of, Rate kind) const;

 private:
  /// Comparable cases of one rank: places in repeated_.
  struct OneRank {
    std::vector<std::size_t> all = {};
    std::size_t fastest_wall = 0, fastest_replay = 0;
  };
  void add_run(std::size_t run);
  void add_one_rank(std::size_t repeated);
  const RepeatedCase* one_rank(const ReportedCase& of, Rate kind) const;
  Spread efficiency(const Spread& rate, const ReportedCase& of, Rate kind) const;

  std::vector<ReportedCase> cases_;
  std::vector<RepeatedCase> repeated_;
  std::unordered_map<std::string, std::size_t> places_;  ///< in repeated_
  std::vector<OneRank> one_ranks_;
  std::vector<Environment> environments_;
  std::int64_t without_ledgers_ = 0;
};

/// A pass whose speed was measured. All others are shown, but never ranked.
bool is_ranked(const Record& record);

/// What must be equal for speeds to be compared: workload, track, device, transport, fabric of replays and
/// environment.
bool comparable(const ReportedCase& a, const ReportedCase& b);

/// The strategy without its sizes, for cases that differ in them alone: "dp2 pp4 schedule=gpipe" is "dp pp
/// schedule=gpipe". Parts of size 1 are left out; "" for one rank.
std::string family_of(const std::string& strategy);

/// " | delays 3 | slow:rank=1,factor=3": what a case ran under; "" of most.
std::string disturbance_of(const Record& record);

}  // namespace shardproof::harness
