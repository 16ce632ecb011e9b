// SPDX-License-Identifier: Apache-2.0
#include "harness/report_data.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace shardproof::harness {

void ReportData::add(const Record& record) {
  auto environment = std::ranges::find(environments_, record.environment);
  if (environment == environments_.end()) environment = environments_.insert(environment, record.environment);
  cases_.push_back({record, static_cast<std::size_t>(environment - environments_.begin())});
  ReportedCase& added = cases_.back();
  added.record.environment = {};
  if (record.ranks == 1 && is_ranked(record)) add_one_rank(added);
  if (cases_.size() <= most_with_ledgers || record.verdict != Verdict::pass || record.ledgers.empty()) return;
  added.record.ledgers = {}, added.record.forms = {};
  ++without_ledgers_;
}

void ReportData::add_one_rank(const ReportedCase& added) {
  const double wall = rate_of(added.record, Rate::wall).median, replay = rate_of(added.record, Rate::replay).median;
  for (OneRank& one : one_ranks_)
    if (comparable(cases_[one.of], added)) {
      one.wall = std::fmax(one.wall, wall), one.replay = std::fmax(one.replay, replay);
      return;
    }
  one_ranks_.push_back({cases_.size() - 1, wall, replay});
}

Spread ReportData::efficiency(const ReportedCase& of, Rate kind) const {
  double one = std::nan("");
  for (const OneRank& candidate : one_ranks_)
    if (comparable(cases_[candidate.of], of)) one = kind == Rate::wall ? candidate.wall : candidate.replay;
  const Spread rate = rate_of(of.record, kind);
  const double ideal = one * static_cast<double>(of.record.ranks);
  return {rate.lower / ideal, rate.median / ideal, rate.upper / ideal};
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

}  // namespace shardproof::harness
