// SPDX-License-Identifier: Apache-2.0
#include "harness/report_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/held.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"

namespace shardproof::harness {
namespace {

using Cases = std::vector<const RepeatedCase*>;

Rate kind_of_ranking(const ReportData& data, const Cases& ranked) {
  const auto crowded = [&](const RepeatedCase* c) { return data.crowded(data.first_of(*c)); };
  const auto replayed = [](const RepeatedCase* c) { return c->replay.measured(); };
  const auto over_fabric = [&](const RepeatedCase* c) { return data.first_of(*c).record.fabric.has_value(); };
  return (std::ranges::any_of(ranked, crowded) || std::ranges::any_of(ranked, over_fabric)) &&
                 std::ranges::all_of(ranked, replayed)
             ? Rate::replay
             : Rate::wall;
}

/// NaN where one of them is.
double median(std::vector<double> values) {
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) return std::nan("");
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// "2", or "1-3" where quartiles overlap with those of others.
std::string places(const Cases& ranked, const RepeatedCase* of, Rate kind) {
  const Spread mine = of->rate(kind);
  std::size_t best = 1, worst = ranked.size();
  for (const RepeatedCase* other : ranked) {
    if (other == of) continue;
    const Spread theirs = other->rate(kind);
    best += theirs.lower > mine.upper;
    worst -= theirs.upper < mine.lower;
  }
  return best == worst ? fmt::format("{}", best) : fmt::format("{}-{}", best, worst);
}

std::string spread_text(const Spread& s) {
  return s.measured() ? fmt::format("{:.0f} ({:.0f} to {:.0f})", s.median, s.lower, s.upper) : "not measured";
}

/// The median of the runs, or "-" where one has none.
std::string percent_text(const ReportData& data, const RepeatedCase& c, const std::string& figure) {
  std::vector<double> values;
  for (const std::size_t run : c.runs) values.push_back(figure_of(data.cases()[run].record, figure));
  const double middle = median(std::move(values));
  return std::isfinite(middle) ? fmt::format("{:.1f} %", 100 * middle) : "-";
}

/// Of the rank and the run that took most; "-" where the ledgers were not kept.
std::string peak_memory_text(const ReportData& data, const RepeatedCase& c) {
  std::int64_t most = -1;
  for (const std::size_t run : c.runs)
    for (const Held& h : held(data.cases()[run].record, "memory_total_peak", "_bytes"))
      for (const std::int64_t bytes : h.counted) most = std::max(most, bytes);
  return most < 0 ? "-" : print_bytes(most);
}

std::string ranking(const ReportData& data, Cases ranked) {
  const Rate kind = kind_of_ranking(data, ranked);
  std::ranges::stable_sort(ranked, std::greater(), [&](const RepeatedCase* c) { return c->rate(kind).median; });
  const std::string of_kind = kind == Rate::wall ? "wall" : "replay", bubble = "bubble_" + of_kind + "_fraction";
  std::vector<std::vector<std::string>> rows = {{"place", "strategy", "ranks", "device", "tokens/s wall (quartiles)",
                                                 "tokens/s replay (quartiles)", "efficiency (" + of_kind + ")",
                                                 "bubble (" + of_kind + ")", "peak memory of a rank"}};
  const bool repeated = std::ranges::any_of(ranked, [](const RepeatedCase* c) { return c->runs.size() > 1; });
  if (repeated) rows[0].emplace_back("runs");
  bool overlap = false;
  for (const RepeatedCase* c : ranked) {
    const Record& record = data.first_of(*c).record;
    const std::string place = places(ranked, c, kind);
    overlap = overlap || place.find('-') != place.npos;
    const double efficiency = data.efficiency(*c, kind).median;
    rows.push_back({place, record.strategy + disturbance_of(record), fmt::format("{}", record.ranks), record.device,
                    spread_text(c->wall), spread_text(c->replay),
                    std::isfinite(efficiency) ? fmt::format("{:.1f} %", 100 * efficiency) : "-",
                    percent_text(data, *c, bubble), peak_memory_text(data, *c)});
    if (repeated) rows.back().push_back(fmt::format("{}", c->runs.size()));
  }
  return table(rows) + (overlap ? "places such as 1-2: quartiles overlap, so these are indistinguishable\n" : "") +
         (repeated ? "several runs: the median one, and the outermost quartiles\n" : "");
}

std::string why_not(const Record& r) {
  if (r.verdict != Verdict::pass) return r.reason;
  return "its speed was not measured";
}

}  // namespace

std::string table_of(const ReportData& data) {
  std::vector<std::vector<std::string>> others = {{"not ranked", "why"}};
  for (const ReportedCase& c : data.cases())
    if (!is_ranked(c.record))
      others.push_back({shown_name(c.record), fmt::format("{}: {}", name_of(c.record.verdict), why_not(c.record))});
  std::string text;
  for (const Cases& group : data.comparable_cases()) {
    const ReportedCase& of = data.first_of(*group.front());
    const Record& first = of.record;
    const bool replay = kind_of_ranking(data, group) == Rate::replay;
    text += fmt::format("{}, {}, by tokens/s ({}{}{})\n{}\n", first.workload, name_of(first.track),
                        first.fabric && replay ? "replay" + over_text(first.fabric)
                        : replay               ? "replay, for there are more ranks than processors"
                                               : "wall",
                        first.fabric && !replay ? "; replay" + over_text(first.fabric) : "",
                        data.environments().size() < 2 ? "" : fmt::format(", environment {}", of.environment + 1),
                        ranking(data, group));
  }
  if (others.size() > 1) text += table(others) + "\n";
  if (!text.empty()) text.pop_back();
  return printable(text);
}

std::string table_of(std::span<const Record> records) {
  ReportData data;
  for (const Record& record : records) data.add(record);
  return table_of(data);
}

}  // namespace shardproof::harness
