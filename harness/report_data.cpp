// SPDX-License-Identifier: Apache-2.0
#include "harness/report_data.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

namespace shardproof::harness {
namespace {

/// Of comparable records that one line made.
std::string identity(const ReportedCase& of) {
  const Record& r = of.record;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", of.environment, r.workload, r.workload_hash,
                     static_cast<int>(r.track), r.device, r.transport, over_text(r.fabric), r.case_text, r.rerun);
}

Spread over_runs(const std::vector<ReportedCase>& cases, const std::vector<std::size_t>& runs, Rate kind) {
  std::vector<double> medians;
  Spread all = rate_of(cases[runs.front()].record, kind);
  for (const std::size_t run : runs) {
    const Spread one = rate_of(cases[run].record, kind);
    if (std::isnan(one.median)) return {std::nan(""), std::nan(""), std::nan("")};
    medians.push_back(one.median);
    all.lower = std::min(all.lower, one.lower);
    all.upper = std::max(all.upper, one.upper);
  }
  std::ranges::sort(medians);
  const std::size_t n = medians.size();
  all.median = (medians[(n - 1) / 2] + medians[n / 2]) / 2;
  return all;
}

}  // namespace

void ReportData::add(const Record& record) {
  auto environment = std::ranges::find(environments_, record.environment);
  if (environment == environments_.end()) environment = environments_.insert(environment, record.environment);
  cases_.push_back({record, static_cast<std::size_t>(environment - environments_.begin())});
  ReportedCase& added = cases_.back();
  added.record.environment = {};
  if (is_ranked(record)) add_run(cases_.size() - 1);
  if (cases_.size() <= most_with_ledgers || record.verdict != Verdict::pass || record.ledgers.empty()) return;
  added.record.ledgers = {}, added.record.forms = {};
  ++without_ledgers_;
}

void ReportData::add_run(std::size_t run) {
  const ReportedCase& added = cases_[run];
  const auto [place, is_new] = places_.emplace(identity(added), repeated_.size());
  if (is_new) repeated_.emplace_back();
  RepeatedCase& repeated = repeated_[place->second];
  repeated.runs.push_back(run);
  repeated.wall = over_runs(cases_, repeated.runs, Rate::wall);
  repeated.replay = over_runs(cases_, repeated.runs, Rate::replay);
  if (added.record.ranks == 1 && disturbance_of(added.record).empty()) add_one_rank(place->second);
}

void ReportData::add_one_rank(std::size_t repeated) {
  const auto same = [&](const OneRank& one) {
    return comparable(first_of(repeated_[one.all.front()]), first_of(repeated_[repeated]));
  };
  auto one = std::ranges::find_if(one_ranks_, same);
  if (one == one_ranks_.end()) one = one_ranks_.insert(one, OneRank{});
  if (std::ranges::find(one->all, repeated) == one->all.end()) one->all.push_back(repeated);
  const auto fastest = [&](Rate kind) {
    return *std::ranges::max_element(one->all, {}, [&](std::size_t k) {
      const double median = repeated_[k].rate(kind).median;
      return std::isnan(median) ? -1 : median;
    });
  };
  one->fastest_wall = fastest(Rate::wall), one->fastest_replay = fastest(Rate::replay);
}

const RepeatedCase* ReportData::one_rank(const ReportedCase& of, Rate kind) const {
  for (const OneRank& one : one_ranks_)
    if (comparable(first_of(repeated_[one.all.front()]), of))
      return &repeated_[kind == Rate::wall ? one.fastest_wall : one.fastest_replay];
  return nullptr;
}

Spread ReportData::efficiency(const Spread& rate, const ReportedCase& of, Rate kind) const {
  const RepeatedCase* one = one_rank(of, kind);
  if (one == nullptr) return {std::nan(""), std::nan(""), std::nan("")};
  Spread ideal = one->rate(kind);
  if (identity(first_of(*one)) == identity(of)) ideal.lower = ideal.upper = ideal.median;
  for (double* part : {&ideal.lower, &ideal.median, &ideal.upper}) *part *= static_cast<double>(of.record.ranks);
  return ratio(rate, ideal);
}

Spread ReportData::efficiency(const ReportedCase& of, Rate kind) const {
  return efficiency(rate_of(of.record, kind), of, kind);
}

Spread ReportData::efficiency(const RepeatedCase& of, Rate kind) const {
  return efficiency(of.rate(kind), first_of(of), kind);
}

std::vector<std::vector<const RepeatedCase*>> ReportData::comparable_cases() const {
  std::vector<std::vector<const RepeatedCase*>> groups;
  for (const RepeatedCase& c : repeated_) {
    const auto same = [&](const auto& group) { return comparable(first_of(*group.front()), first_of(c)); };
    const auto group = std::ranges::find_if(groups, same);
    if (group == groups.end())
      groups.push_back({&c});
    else
      group->push_back(&c);
  }
  return groups;
}

bool ReportData::crowded(const ReportedCase& of) const {
  return of.record.device == "cpu" && of.record.ranks > environments_[of.environment].cores;
}

Spread ratio(const Spread& a, const Spread& b) {
  // In logarithms the ratio is a difference. Its variance is the sum of the two for independent quantities, and for
  // normal ones a quartile lies 0.6745 standard deviations from the median, so the distances from median to quartile
  // add in squares. Each side by itself, for skewed ones: the ratio is high where a is high and b is low. Where one of
  // the two does not vary, this is exact whatever the other's distribution.
  const double up = std::hypot(std::log(a.upper / a.median), std::log(b.median / b.lower)),
               down = std::hypot(std::log(a.median / a.lower), std::log(b.upper / b.median));
  const double median = a.median / b.median;
  return {median * std::exp(-down), median, median * std::exp(up)};
}

bool Spread::measured() const { return std::isfinite(lower) && std::isfinite(median) && std::isfinite(upper); }

Spread spread_of(const Record& record, const std::string& name) {
  return {figure_of(record, name + "_lower_quartile"), figure_of(record, name + "_median"),
          figure_of(record, name + "_upper_quartile")};
}

Spread rate_of(const Record& record, Rate kind) {
  return spread_of(record, kind == Rate::wall ? "tokens_per_second" : "tokens_per_second_replay");
}

bool is_ranked(const Record& record) {
  return record.verdict == Verdict::pass && rate_of(record, Rate::wall).measured();
}

bool comparable(const ReportedCase& a, const ReportedCase& b) {
  const auto key = [](const ReportedCase& c) {
    const Record& r = c.record;
    return std::tie(r.workload, r.workload_hash, r.track, r.device, r.transport, r.fabric, c.environment);
  };
  return key(a) == key(b);
}

std::string family_of(const std::string& strategy) {
  std::string family;
  for (std::size_t begin = 0; begin < strategy.size();) {
    const std::size_t end = std::min(strategy.find(' ', begin), strategy.size());
    std::string word = strategy.substr(begin, end - begin);
    begin = end + 1;
    const auto digits = word.find_first_of("0123456789");
    if (word.find('=') == word.npos && digits != word.npos) {
      if (word.substr(digits) == "1") continue;
      word.resize(digits);
    }
    family += (family.empty() ? "" : " ") + word;
  }
  return family;
}

std::string disturbance_of(const Record& record) { return shown_name(record).substr(record.case_text.size()); }

}  // namespace shardproof::harness
