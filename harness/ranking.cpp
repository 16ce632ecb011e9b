// SPDX-License-Identifier: Apache-2.0
#include "harness/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "harness/figures.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"

namespace shardproof::harness {
namespace {

double figure(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record.figures, name, &Figures::value_type::first);
  return found == record.figures.end() ? std::nan("") : found->second;
}

/// All records of one case that were measured.
struct Measured {
  const Record* record;
  std::vector<double> medians, replays, bubbles;
  double low = 0, high = 0;
  double rate() const { return quartiles(medians)[1]; }
};

std::int64_t largest_total(const Record& record) {
  std::int64_t most = 0;
  for (const auto& [name, bytes] : record.ledgers)
    if (name.ends_with("memory_total_peak_bytes")) most = std::max(most, bytes);
  return most;
}

std::string number_or_dash(const std::vector<double>& values, const char* format) {
  return values.empty() ? "-" : fmt::format(fmt::runtime(format), quartiles(values)[1]);
}

void add_if_measured(std::vector<double>& values, double value) {
  if (std::isfinite(value)) values.push_back(value);
}

bool is_unchecked(const Record& record) { return record.judged == "unchecked"; }

std::string group_table(std::vector<Measured> group) {
  const bool ranked = !is_unchecked(*group.front().record);
  if (ranked) std::ranges::stable_sort(group, std::ranges::greater(), &Measured::rate);
  const auto one = std::ranges::find(group, 1, [](const Measured& m) { return m.record->ranks; });
  std::vector<std::vector<std::string>> rows = {
      {"strategy", "ranks", "tokens/s", "interval", "replay", "efficiency", "bubble", "memory of a rank", ""}};
  const Measured& best = group.front();
  for (const Measured& m : group) {
    const double per_rank = m.rate() / static_cast<double>(m.record->ranks);
    const bool equal = ranked && m.record != best.record && m.high >= best.low;
    const std::string verdict =
        m.record->verdict == Verdict::pass || !ranked ? "" : std::string(name_of(m.record->verdict));
    rows.push_back(
        {m.record->strategy, std::to_string(m.record->ranks), fmt::format("{:.0f}", m.rate()),
         fmt::format("{:.0f} to {:.0f}", m.low, m.high), number_or_dash(m.replays, "{:.0f}"),
         one == group.end() ? "-" : fmt::format("{:.2f}", per_rank / one->rate()),
         number_or_dash(m.bubbles, "{:.1f} %"), print_bytes(largest_total(*m.record)),
         equal ? (verdict.empty() ? "not to be told from the first" : verdict + "; not to be told from the first")
               : verdict});
  }
  return fmt::format("{}, {}{} (bubble and replay: on a clock where each rank has a device)\n", best.record->workload,
                     name_of(best.record->track), ranked ? "" : ", unchecked and so not ranked") +
         table(rows);
}

}  // namespace

std::string ranking(std::span<const Record> records) {
  std::map<std::string, std::vector<Measured>> groups;
  std::vector<std::vector<std::string>> others;
  for (const Record& record : records) {
    const double median = figure(record, "tokens_per_second_median");
    if (std::isnan(median)) {
      others.push_back({std::string(name_of(record.verdict)), record.case_text, record.reason});
      continue;
    }
    auto& group = groups[fmt::format("{} {} {}", record.workload_hash, name_of(record.track), is_unchecked(record))];
    auto same = std::ranges::find(group, record.case_text, [](const Measured& m) { return m.record->case_text; });
    if (same == group.end())
      same = group.insert(
          group.end(),
          {.record = &record, .medians = {}, .replays = {}, .bubbles = {}, .low = HUGE_VAL, .high = -HUGE_VAL});
    same->medians.push_back(median);
    same->low = std::min(same->low, figure(record, "tokens_per_second_lower_quartile"));
    same->high = std::max(same->high, figure(record, "tokens_per_second_upper_quartile"));
    add_if_measured(same->replays, figure(record, "tokens_per_second_replay_median"));
    add_if_measured(same->bubbles, 100 * figure(record, "bubble_replay_fraction"));
  }
  std::string text;
  for (auto& [name, group] : groups) text += (text.empty() ? "" : "\n") + group_table(std::move(group));
  if (!others.empty()) text += (text.empty() ? "" : "\n") + table(others);
  return text;
}

}  // namespace shardproof::harness
