// SPDX-License-Identifier: Apache-2.0
#include "harness/report_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "harness/html.hpp"

namespace shardproof::harness {
namespace {

constexpr double width = 640, height = 320, left = 90, right = 20, top = 16, bottom = 48;
constexpr std::size_t colours = 6;
constexpr std::string_view crowded = "more ranks than processors";

/// 1, 2 or 5 times a power of ten, so that about five such steps reach `most`.
double tick_step(double most) {
  const double power = std::pow(10.0, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (most <= 5.5 * factor * power) return factor * power;
  return 10 * power;
}

struct Axes {
  double most_x = 2, most_y = 0;
  double x(double value) const { return left + (width - left - right) * std::log(value) / std::log(most_x); }
  double y(double value) const { return height - bottom - (height - top - bottom) * value / most_y; }
};

std::string grid(const Axes& axes, const std::set<double>& marks, const std::string& x_axis,
                 const std::string& y_axis) {
  std::string out;
  const double step = tick_step(axes.most_y);
  for (int k = 0; k * step <= axes.most_y; ++k) {
    const double y = axes.y(k * step);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>",
        left, width - right, y, left - 6, y + 4, html::readable(k * step));
  }
  double last = -100;
  for (const double mark : marks) {
    const double x = axes.x(mark);
    if (x - last < 30) continue;  // numbers would overlap
    last = x;
    out += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>", x, height - bottom + 18,
                       html::readable(mark));
  }
  out += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>", (left + width - right) / 2, height - 8,
                     html::escaped(x_axis));
  return out + fmt::format("<text class=\"middle\" transform=\"translate(16 {:.1f}) rotate(-90)\">{}</text>",
                           (top + height - bottom) / 2, html::escaped(y_axis));
}

std::string line(const Axes& axes, const ChartSeries& series, std::size_t colour) {
  std::string path, marks;
  for (const ChartPoint& p : series.points) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", axes.x(p.x), axes.y(p.y.median));
    marks += fmt::format(
        "<path class=\"spread\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><circle{7} cx=\"{0:.1f}\" cy=\"{3:.1f}\" "
        "r=\"3.5\"><title>{4}: {5} at {6}{8}</title></circle>",
        axes.x(p.x), axes.y(p.y.lower), axes.y(p.y.upper), axes.y(p.y.median), html::escaped(series.name),
        html::readable(p.y.median), html::readable(p.x), p.crowded ? " class=\"hollow\"" : "",
        p.crowded ? fmt::format(", {}", crowded) : "");
  }
  return fmt::format("<g class=\"c{}{}\"><path class=\"line\" d=\"{}\"/>{}</g>", colour % colours,
                     series.dashed ? " dashed" : "", path, marks);
}

}  // namespace

std::string line_chart(const std::string& title, const std::string& x_axis, const std::string& y_axis,
                       const std::vector<ChartSeries>& series, bool ideal) {
  Axes axes{.most_y = ideal ? 1.0 : 0.0};
  std::set<double> marks;
  for (const ChartSeries& s : series)
    for (const ChartPoint& p : s.points) {
      axes.most_x = std::max(axes.most_x, p.x), axes.most_y = std::max(axes.most_y, p.y.upper);
      marks.insert(p.x);
    }
  if (marks.empty() || axes.most_y <= 0) return "";
  axes.most_y *= 1.05;
  std::string drawn, legend;
  for (std::size_t k = 0; k < series.size(); ++k) {
    const std::size_t colour = k / 2;  // wall and replay of a strategy are neighbours
    drawn += line(axes, series[k], colour);
    legend += fmt::format(
        "<li class=\"c{}{}\"><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 28 8\"><path class=\"line\" "
        "d=\"M0 4H28\"/></svg>{}</li>",
        colour % colours, series[k].dashed ? " dashed" : "", html::escaped(series[k].name));
  }
  const auto is_crowded = [](const ChartSeries& s) { return std::ranges::any_of(s.points, &ChartPoint::crowded); };
  if (std::ranges::any_of(series, is_crowded))
    legend += fmt::format(
        "<li><svg class=\"swatch\" aria-hidden=\"true\" viewBox=\"0 0 12 12\"><circle class=\"hollow\" cx=\"6\" "
        "cy=\"6\" r=\"3.5\"/></svg>wall, {}</li>",
        crowded);
  if (ideal)
    drawn = fmt::format("<line class=\"ideal\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", left,
                        width - right, axes.y(1)) +
            drawn;
  return fmt::format(
      "<figure><figcaption>{}</figcaption><svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} "
      "{}\">{}{}</svg><ul class=\"legend\">{}</ul></figure>\n",
      html::escaped(title), html::escaped(title + "; the numbers are in the table"), width, height,
      grid(axes, marks, x_axis, y_axis), drawn, legend);
}

namespace {

constexpr std::string_view lanes[] = {"action", "compute", "communication", "wait", "copy"};
constexpr double lane_height = 14, rank_gap = 8, lane_left = 150, lane_width = 900;

struct Range {
  double start = std::numeric_limits<double>::infinity(), end = -std::numeric_limits<double>::infinity();
  void cover(const TimelineSpan& span) { start = std::min(start, span.start), end = std::max(end, span.end); }
};

/// Of the step that started last and has the same name on each rank, and its name.
std::pair<Range, std::string> shown_part(const Timeline& timeline) {
  std::string last;
  double start = -std::numeric_limits<double>::infinity();
  for (const auto& [rank, by_name] : timeline.ranks)
    if (const auto steps = by_name.find("step"); steps != by_name.end())
      for (const TimelineSpan& span : steps->second)
        if (span.start > start) start = span.start, last = span.name;
  Range range;
  for (const auto& [rank, by_name] : timeline.ranks)
    for (const auto& [lane, spans] : by_name)
      for (const TimelineSpan& span : spans)
        if (last.empty() || (lane == "step" && span.name == last)) range.cover(span);
  return {range, last.empty() ? "all of the trace" : last};
}

std::string lane_picture(const std::vector<TimelineSpan>& spans, std::string_view css, const Range& range, double top_y,
                         double narrow, bool named) {
  const double scale = range.end > range.start ? lane_width / (range.end - range.start) : 0;
  std::string out;
  double from = 0, to = -1;
  std::size_t together = 0;
  const TimelineSpan* only = nullptr;
  const auto flush = [&] {
    if (together == 0) return;
    const std::string title =
        together == 1 ? fmt::format("{}: {} us", html::escaped(only->name), html::readable(only->end - only->start))
                      : fmt::format("{} spans", together);
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\"><title>{}</title>"
        "</rect>",
        css, lane_left + from, top_y, std::max(to - from, 0.3), lane_height - 2, title);
    if (named && together == 1 && to - from > 6.0 * static_cast<double>(only->name.size()))
      out += fmt::format("<text class=\"middle on\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", lane_left + (from + to) / 2,
                         top_y + lane_height - 4, html::escaped(only->name));
    together = 0;
  };
  for (const TimelineSpan& span : spans) {
    if (span.end < range.start || span.start > range.end) continue;
    const double a = (std::max(span.start, range.start) - range.start) * scale,
                 b = (std::min(span.end, range.end) - range.start) * scale;
    if (together > 0 && b - from < narrow) {
      to = std::max(to, b);
      ++together;
      continue;
    }
    flush();
    from = a, to = b, together = 1, only = &span;
  }
  flush();
  return out;
}

}  // namespace

std::string timeline_picture(const Timeline& timeline) {
  const auto [range, part] = shown_part(timeline);
  const auto rows = static_cast<double>(timeline.ranks.size() * std::size(lanes));
  const double narrow = std::max(0.5, rows * lane_width / 20000);  // at most some 20,000 boxes in all
  std::string drawn;
  double y = 4;
  for (const auto& [rank, by_name] : timeline.ranks) {
    drawn += fmt::format("<text x=\"0\" y=\"{:.1f}\">rank {}</text>", y + lane_height - 4, rank);
    for (const std::string_view lane : lanes) {
      const auto spans = by_name.find(std::string(lane));
      if (spans == by_name.end()) continue;
      drawn +=
          fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>", lane_left - 6, y + lane_height - 4, lane);
      drawn += lane_picture(spans->second, lane, range, y, narrow, lane == "action");
      y += lane_height;
    }
    y += rank_gap;
  }
  const double whole = range.end - range.start, step = whole > 0 ? tick_step(whole) : 1;
  for (int k = 0; k * step <= whole; ++k)
    drawn += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
                         lane_left + (whole > 0 ? lane_width * k * step / whole : 0), y + 12, html::readable(k * step));
  drawn += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">microseconds since the start</text>",
                       lane_left + lane_width / 2, y + 28);
  return fmt::format(
      "<figure><figcaption>{0}: {1}, wall time</figcaption><svg class=\"timeline\" role=\"img\" aria-label=\"{0}: "
      "what each rank does over time\" viewBox=\"0 0 {2} {3:.0f}\" data-ranks=\"{4}\">{5}</svg></figure>\n",
      html::escaped(timeline.title), html::escaped(part), lane_left + lane_width + 40, y + 36, timeline.ranks.size(),
      drawn);
}

}  // namespace shardproof::harness
