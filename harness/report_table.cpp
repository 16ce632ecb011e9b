// SPDX-License-Identifier: Apache-2.0
#include "harness/report_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "harness/held.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"

namespace shardproof::harness {
namespace {

using Cases = std::vector<const ReportedCase*>;

Rate kind_of_ranking(const ReportData& data, const Cases& ranked) {
  const auto crowded = [&](const ReportedCase* c) {
    return c->record.ranks > data.environments()[c->environment].cores && c->record.device == "cpu";
  };
  const auto replayed = [](const ReportedCase* c) { return rate_of(c->record, Rate::replay).measured(); };
  const auto over_fabric = [](const ReportedCase* c) { return c->record.fabric.has_value(); };
  return (std::ranges::any_of(ranked, crowded) || std::ranges::any_of(ranked, over_fabric)) &&
                 std::ranges::all_of(ranked, replayed)
             ? Rate::replay
             : Rate::wall;
}

/// A case with its speeds over all its runs, which one line made.
struct Ranked {
  Cases runs;
  Spread wall, replay;

  const Record& record() const { return runs.front()->record; }
  const Spread& rate(Rate kind) const { return kind == Rate::wall ? wall : replay; }
};

/// NaN where one of them is.
double median(std::vector<double> values) {
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) return std::nan("");
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Between the median runs; quartiles are the outermost, so that runs that differ make a case hard to tell from others.
Spread over_runs(const Cases& runs, Rate kind) {
  std::vector<double> medians;
  Spread all = rate_of(runs.front()->record, kind);
  for (const ReportedCase* run : runs) {
    const Spread one = rate_of(run->record, kind);
    medians.push_back(one.median);
    all.lower = std::min(all.lower, one.lower);
    all.upper = std::max(all.upper, one.upper);
  }
  all.median = median(std::move(medians));
  return all;
}

std::vector<Ranked> pooled(const Cases& cases) {
  std::vector<Ranked> result;
  for (const ReportedCase* c : cases) {
    const auto same = [&](const ReportedCase* other) {
      return other->record.case_text == c->record.case_text && other->record.rerun == c->record.rerun;
    };
    if (std::ranges::any_of(result, same, [](const Ranked& r) { return r.runs.front(); })) continue;
    Cases runs;
    std::ranges::copy_if(cases, std::back_inserter(runs), same);
    result.push_back({runs, over_runs(runs, Rate::wall), over_runs(runs, Rate::replay)});
  }
  return result;
}

/// "2", or "1-3" where quartiles overlap with those of others.
std::string places(std::span<const Ranked> ranked, const Ranked& of, Rate kind) {
  const Spread mine = of.rate(kind);
  std::size_t best = 1, worst = ranked.size();
  for (const Ranked& other : ranked) {
    if (&other == &of) continue;
    const Spread theirs = other.rate(kind);
    best += theirs.lower > mine.upper;
    worst -= theirs.upper < mine.lower;
  }
  return best == worst ? fmt::format("{}", best) : fmt::format("{}-{}", best, worst);
}

std::string spread_text(const Spread& s) {
  return s.measured() ? fmt::format("{:.0f} ({:.0f} to {:.0f})", s.median, s.lower, s.upper) : "not measured";
}

/// The median of the runs, or "-" where one has none.
template <class Figure>
std::string percent_text(const Cases& runs, const Figure& figure) {
  std::vector<double> values;
  for (const ReportedCase* run : runs) values.push_back(figure(*run));
  const double middle = median(std::move(values));
  return std::isfinite(middle) ? fmt::format("{:.1f} %", 100 * middle) : "-";
}

/// Of the rank and the run that took most; "-" where the ledgers were not kept.
std::string peak_memory_text(const Cases& runs) {
  std::int64_t most = -1;
  for (const ReportedCase* run : runs)
    for (const Held& h : held(run->record, "memory_total_peak", "_bytes"))
      for (const std::int64_t bytes : h.counted) most = std::max(most, bytes);
  return most < 0 ? "-" : print_bytes(most);
}

std::string ranking(const ReportData& data, const Cases& cases) {
  const Rate kind = kind_of_ranking(data, cases);
  std::vector<Ranked> ranked = pooled(cases);
  std::ranges::stable_sort(ranked, std::greater(), [&](const Ranked& r) { return r.rate(kind).median; });
  const std::string of_kind = kind == Rate::wall ? "wall" : "replay", bubble = "bubble_" + of_kind + "_fraction";
  std::vector<std::vector<std::string>> rows = {{"place", "strategy", "ranks", "device", "tokens/s wall (quartiles)",
                                                 "tokens/s replay (quartiles)", "efficiency (" + of_kind + ")",
                                                 "bubble (" + of_kind + ")", "peak memory of a rank"}};
  const bool repeated = std::ranges::any_of(ranked, [](const Ranked& r) { return r.runs.size() > 1; });
  if (repeated) rows[0].emplace_back("runs");
  bool overlap = false;
  for (const Ranked& r : ranked) {
    const Record& record = r.record();
    const std::string place = places(ranked, r, kind);
    overlap = overlap || place.find('-') != place.npos;
    const std::string disturbed = shown_name(record).substr(record.case_text.size());
    rows.push_back({place, record.strategy + disturbed, fmt::format("{}", record.ranks), record.device,
                    spread_text(r.wall), spread_text(r.replay),
                    percent_text(r.runs, [&](const ReportedCase& c) { return data.efficiency(c, kind).median; }),
                    percent_text(r.runs, [&](const ReportedCase& c) { return figure_of(c.record, bubble); }),
                    peak_memory_text(r.runs)});
    if (repeated) rows.back().push_back(fmt::format("{}", r.runs.size()));
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
  std::vector<Cases> groups;
  std::vector<std::vector<std::string>> others = {{"not ranked", "why"}};
  for (const ReportedCase& c : data.cases()) {
    if (!is_ranked(c.record)) {
      others.push_back({shown_name(c.record), fmt::format("{}: {}", name_of(c.record.verdict), why_not(c.record))});
      continue;
    }
    const auto same = std::ranges::find_if(groups, [&](const Cases& group) { return comparable(*group.front(), c); });
    if (same == groups.end())
      groups.push_back({&c});
    else
      same->push_back(&c);
  }
  std::string text;
  for (const Cases& group : groups) {
    const Record& first = group.front()->record;
    const bool replay = kind_of_ranking(data, group) == Rate::replay;
    text += fmt::format(
        "{}, {}, by tokens/s ({}{}{})\n{}\n", first.workload, name_of(first.track),
        first.fabric && replay ? "replay" + over_text(first.fabric)
        : replay               ? "replay, for there are more ranks than processors"
                               : "wall",
        first.fabric && !replay ? "; replay" + over_text(first.fabric) : "",
        data.environments().size() < 2 ? "" : fmt::format(", environment {}", group.front()->environment + 1),
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
