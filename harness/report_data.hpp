// SPDX-License-Identifier: Apache-2.0
// What reports are made of: the records of one or several runs, and what is read out of them in more than one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  std::int64_t without_ledgers() const { return without_ledgers_; }

  /// Tokens/s per rank over those of one rank (the fastest comparable one that is ranked): the quartiles of the case
  /// over the median of one rank. NaN where either is missing.
  Spread efficiency(const ReportedCase& of, Rate kind) const;

 private:
  struct OneRank {
    std::size_t of;  ///< a case that it stands for
    double wall, replay;
  };
  void add_one_rank(const ReportedCase& added);

  std::vector<ReportedCase> cases_;
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

}  // namespace shardproof::harness
