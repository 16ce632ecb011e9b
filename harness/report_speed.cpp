// SPDX-License-Identifier: Apache-2.0
// Throughput, efficiency, time and bubble.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "harness/html.hpp"
#include "harness/report_chart.hpp"
#include "harness/report_sections.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"

namespace shardproof::harness {
namespace {

constexpr std::string_view missing = "<td class=\"note\">&ndash;</td>";

std::string cell(std::size_t index, const Record& record, const std::string& figure) {
  const double value = figure_of(record, figure);
  return std::isnan(value) ? std::string(missing) : html::figure_cell(index + 1, figure, value);
}

std::string percent_cell(std::size_t index, const Record& record, const std::string& figure) {
  const double value = figure_of(record, figure);
  return std::isnan(value) ? std::string(missing)
                           : html::figure_cell(index + 1, figure, value, fmt::format("{:.1f} %", 100 * value));
}

std::string efficiency_cell(std::size_t index, const Spread& efficiency, std::string_view kind) {
  if (!efficiency.measured()) return std::string(missing);
  return html::figure_cell(
      index + 1, fmt::format("efficiency_{}", kind), efficiency.median,
      fmt::format("{:.3f} ({:.3f} to {:.3f})", efficiency.median, efficiency.lower, efficiency.upper));
}

/// With the fabric of its replays.
std::string device_of(const Record& record) {
  return record.fabric ? fmt::format("{}; replay{}", record.device, over_text(record.fabric)) : record.device;
}

/// A line for each family of strategies and each kind; one rank is the start of each.
template <class Value>
std::vector<ChartSeries> series_of(const ReportData& data, const std::vector<const RepeatedCase*>& group,
                                   const Value& value) {
  std::map<std::string, std::vector<const RepeatedCase*>> families;
  std::vector<const RepeatedCase*> one;
  for (const RepeatedCase* c : group) {
    const Record& r = data.first_of(*c).record;
    const std::string disturbance = disturbance_of(r);
    if (r.ranks == 1 && disturbance.empty())
      one.push_back(c);
    else
      families[family_of(r.strategy) + disturbance].push_back(c);
  }
  if (families.empty()) families["one rank"];
  std::vector<ChartSeries> all;
  for (const auto& [family, members] : families)
    for (const Rate kind : {Rate::wall, Rate::replay}) {
      ChartSeries series{
          .name = family + (kind == Rate::wall ? ", wall" : ", replay"), .dashed = kind == Rate::replay, .points = {}};
      for (const std::vector<const RepeatedCase*>* part : {&std::as_const(one), &members})
        for (const RepeatedCase* c : *part) {
          const ReportedCase& first = data.first_of(*c);
          if (const Spread s = value(*c, kind); s.measured())
            series.points.push_back(
                {static_cast<double>(first.record.ranks), s, kind == Rate::wall && data.crowded(first)});
        }
      std::ranges::stable_sort(series.points, {}, &ChartPoint::x);
      all.push_back(std::move(series));
    }
  return all;
}

constexpr std::size_t most_charts = 12;

std::string charts(const ReportData& data) {
  std::string out;
  const auto groups = data.comparable_cases();
  for (std::size_t k = 0; k < std::min(groups.size(), most_charts); ++k) {
    const ReportedCase& first = data.first_of(*groups[k].front());
    const Environment& machine = data.environments()[first.environment];
    const auto name = fmt::format("{}, {}, {}, {} with {}", first.record.workload, name_of(first.record.track),
                                  device_of(first.record), machine.processor, counted(machine.cores, "core"));
    out += line_chart("Throughput: " + name, "ranks", "tokens/s, median and quartiles",
                      series_of(data, groups[k], [](const RepeatedCase& c, Rate kind) { return c.rate(kind); }));
    out += line_chart(
        "Efficiency: " + name, "ranks", "of one rank's tokens/s, per rank",
        series_of(data, groups[k], [&](const RepeatedCase& c, Rate kind) { return data.efficiency(c, kind); }), true);
  }
  if (groups.size() > most_charts)
    out += fmt::format("<p class=\"note\">Charts of the first {} of {} workloads.</p>\n", most_charts, groups.size());
  return out;
}

std::string rows_of(const ReportData& data, bool ranked) {
  std::string rows;
  for (std::size_t i = 0; i < data.cases().size(); ++i) {
    const ReportedCase& c = data.cases()[i];
    if (is_ranked(c.record) != ranked || std::isnan(figure_of(c.record, "tokens_per_second_median"))) continue;
    rows += fmt::format("<tr>{}<td>{}</td><td>{}{}</td>", case_head(data, i), html::escaped(device_of(c.record)),
                        c.record.ranks, data.crowded(c) ? "*" : "");
    for (const std::string kind : {"tokens_per_second", "tokens_per_second_replay"})
      for (const char* part : {"_lower_quartile", "_median", "_upper_quartile"}) rows += cell(i, c.record, kind + part);
    if (ranked)
      rows += efficiency_cell(i, data.efficiency(c, Rate::wall), "wall") +
              efficiency_cell(i, data.efficiency(c, Rate::replay), "replay") +
              cell(i, c.record, "twin_efficiency_median") + percent_cell(i, c.record, "mfu");
    else
      rows += fmt::format("<td>{}</td>", html::escaped(c.record.reason));
    rows += "</tr>\n";
  }
  return rows;
}

std::string throughput_table(std::string_view caption, std::string_view last, const std::string& rows) {
  if (rows.empty()) return "";
  return fmt::format(
      "<div class=\"wide\"><table><caption>{}</caption><thead><tr><th>case<th>device<th>ranks<th>wall: lower quartile"
      "<th>median<th>upper quartile<th>replay: lower quartile<th>median<th>upper "
      "quartile{}</tr></thead><tbody>\n{}</tbody>"
      "</table></div>\n",
      caption, last, rows);
}

}  // namespace

std::string throughput_section(const ReportData& data) {
  const std::string ranked = rows_of(data, true), others = rows_of(data, false);
  if (ranked.empty() && others.empty()) return "";
  return "<h2>Throughput and efficiency</h2>\n<p class=\"note\">Valid tokens per second of a step. Wall: by the clock; "
         "replay: the recorded operations on a clock where every rank has a device of its own. Efficiency: tokens/s "
         "per "
         "rank over those of one rank of the same workload, track and device (the fastest case of one rank), with "
         "quartiles "
         "of the ratio, to which the spread of both adds. Points of charts are cases, with all their runs: the median "
         "one, and the outermost quartiles. * and hollow points: more ranks than this machine has processors, so wall "
         "times share them.</p>\n" +
         charts(data) +
         throughput_table("Tokens/s", "<th>efficiency, wall<th>efficiency, replay<th>efficiency, twin<th>MFU", ranked) +
         throughput_table("Measured, but not ranked", "<th>why", others);
}

std::string time_section(const ReportData& data) {
  constexpr std::string_view parts[] = {"compute", "communication", "wait", "copy", "host"};
  std::string rows;
  for (std::size_t i = 0; i < data.cases().size(); ++i) {
    const Record& r = data.cases()[i].record;
    std::vector<html::BarPart> bar;
    std::string cells;
    for (const std::string_view part : parts) {
      const auto name = fmt::format("time_{}_share", part);
      bar.push_back({part, figure_of(r, name)});
      cells += percent_cell(i, r, name);
    }
    if (std::isnan(bar.front().share)) continue;
    rows +=
        fmt::format("<tr>{}<td>{}</td>{}{}{}{}<td>{}</td></tr>\n", case_head(data, i), html::escaped(r.device),
                    cell(i, r, "step_seconds_lower_quartile"), cell(i, r, "step_seconds_median"),
                    cell(i, r, "step_seconds_upper_quartile"), cells, html::bar(bar, "shares of the time of a step"));
  }
  if (rows.empty()) return "";
  return fmt::format(
      "<h2>Where the time goes</h2>\n<div class=\"wide\"><table><caption>Wall time of all ranks; communication is what "
      "computation does not hide</caption><thead><tr><th>case<th>device<th>step, s: lower quartile<th>median<th>upper "
      "quartile<th>compute<th>communication<th>wait<th>copy<th>host<th></tr></thead><tbody>\n{}</tbody></table></"
      "div>\n",
      rows);
}

std::string bubble_section(const ReportData& data) {
  constexpr std::string_view kinds[] = {"formula", "replay", "wall"};
  std::string rows;
  for (std::size_t i = 0; i < data.cases().size(); ++i) {
    const Record& r = data.cases()[i].record;
    for (const std::string_view kind : kinds) {
      const auto fraction = fmt::format("bubble_{}_fraction", kind), overhead = fmt::format("bubble_{}_overhead", kind);
      const double value = figure_of(r, fraction);
      if (std::isnan(value) && std::isnan(figure_of(r, overhead))) continue;
      rows +=
          fmt::format("<tr>{}<td>{}</td><td>{}</td>{}{}<td>{}</td></tr>\n", case_head(data, i),
                      html::escaped(kind == "replay" ? device_of(r) : r.device), kind, percent_cell(i, r, fraction),
                      cell(i, r, overhead), html::bar({{"bubble", value}}, fmt::format("bubble fraction by {}", kind)));
    }
  }
  if (rows.empty()) return "";
  return fmt::format(
      "<h2>Pipeline bubble</h2>\n<div class=\"wide\"><table><caption>Fraction: idle time over ranks x makespan of the "
      "pipeline part; overhead: idle over ideal time. Medians over steps; without a flush, of several steps together "
      "in "
      "the steady state</caption><thead><tr><th>case<th>device<th>kind"
      "<th>fraction<th>overhead<th></tr></thead><tbody>\n{}</tbody></table></div>\n",
      rows);
}

}  // namespace shardproof::harness
