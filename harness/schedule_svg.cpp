// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_svg.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "harness/html.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::harness {
namespace {

constexpr double width = 1160, left = 62, top = 34, bar = 22, row = 32;  // rows apart, so that messages are seen
// Okabe and Ito's colours, which people with any colour vision tell apart; in the order of ActionKind.
constexpr std::array<const char*, 5> fills = {"#56b4e9", "#e69f00", "#009e73", "#f0c050", "#cc79a7"};
constexpr std::array<const char*, 5> meanings = {"F forward", "I input gradient", "W weight gradient",
                                                 "B both gradients", "U update"};

double rounded(double pixels) { return std::round(10 * pixels) / 10; }

class Drawing {
 public:
  Drawing(const plan::Schedule& schedule, const plan::Timeline& timeline)
      : schedule_(schedule), timeline_(timeline), index_(schedule, plan::extent_of(schedule)) {
    if (timeline.makespan > 0) scale_ = width / timeline.makespan;
    if (scale_ > 1) scale_ = std::floor(scale_);  // whole pixels where costs are whole
    bool several_stages = false, all_fit = true;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
        const plan::Action& a = schedule.ranks[rank][k];
        const plan::Span& span = timeline.ranks[rank][k];
        used_[static_cast<std::size_t>(a.kind)] = true;
        several_stages = several_stages || a.stage != schedule.ranks[rank].front().stage;
        all_fit = all_fit && (span.end == span.start || fits(with_stage(a), x_of(span.end) - x_of(span.start)));
      }
    with_stages_ = several_stages && all_fit;
  }

  std::string text(const std::string& title) {
    const auto ranks = static_cast<double>(schedule_.ranks.size());
    const double height = top + row * ranks + 28;
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.6g} {1:.6g}\" width=\"{0:.6g}\" "
        "height=\"{1:.6g}\">\n<style>text{{font:11px sans-serif;text-anchor:middle}}.left{{text-anchor:start}}"
        "rect{{stroke:#fff;stroke-width:.6}}.idle{{fill:#ddd}}.message{{fill:none;stroke:#555;stroke-width:.7}}",
        left + width + 12, height);
    for (std::size_t k = 0; k < fills.size(); ++k)
      if (used_[k]) text += fmt::format(".{}{{fill:{}}}", meanings[k][0], fills[k]);
    text += fmt::format(
        "</style>\n<rect width=\"{:.6g}\" height=\"{:.6g}\" fill=\"#fff\"/>\n"
        "<text class=\"left\" x=\"{:.6g}\" y=\"20\">{}</text>\n",
        left + width + 12, height, left,
        html::escaped(fmt::format("{}: makespan {:.6g}, bubble {:.4g} of all ranks' time", title, timeline_.makespan,
                                  timeline_.bubble_fraction())));
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) text += row_of(rank);
    return text + messages() + legend(height - 18) + "</svg>\n";
  }

 private:
  static double y_of(std::size_t rank) { return top + row * static_cast<double>(rank); }
  double x_of(double time) const { return rounded(scale_ * time); }
  static std::string with_stage(const plan::Action& a) { return fmt::format("{}:{}", a.stage, a.microbatch); }
  /// A digit of the font is about 6 pixels wide.
  static bool fits(const std::string& label, double w) { return w > 6.5 * static_cast<double>(label.size()); }

  std::string row_of(std::size_t rank) const {
    std::string text = fmt::format(
        "<g transform=\"translate({:.6g},{:.6g})\"><text class=\"left\" x=\"-58\" y=\"15\">rank {}</text>"
        "<rect class=\"idle\" width=\"{:.6g}\" height=\"{}\"/>\n",
        left, y_of(rank), rank, x_of(timeline_.makespan), bar);
    std::string instants;  // over their neighbours
    for (std::size_t k = 0; k < schedule_.ranks[rank].size(); ++k) {
      const plan::Action& a = schedule_.ranks[rank][k];
      const plan::Span& span = timeline_.ranks[rank][k];
      const double x = x_of(span.start), w = x_of(span.end) - x;
      const bool instant = span.end == span.start;
      (instant ? instants : text) += fmt::format(
          "<rect class=\"{}\" x=\"{:.6g}\" width=\"{:.6g}\" height=\"{}\"><title>{}: {:.6g} to {:.6g}</title></rect>",
          plan::letter_of(a.kind), instant ? x - 1 : x, instant ? 2 : rounded(w), bar, print(a), span.start, span.end);
      if (!instant) text += label_of(a, x, w) + "\n";
    }
    return text + instants + "</g>\n";
  }

  std::string label_of(const plan::Action& a, double x, double w) const {
    const std::string label = with_stages_ ? with_stage(a) : fmt::format("{}", a.microbatch);
    return fits(label, w) ? fmt::format("<text x=\"{:.6g}\" y=\"15\">{}</text>", rounded(x + w / 2), label) : "";
  }

  /// From the end of what makes each to the start of what waits for it.
  std::string messages() const {
    std::string lines;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      for (std::size_t k = 0; k < schedule_.ranks[rank].size(); ++k) {
        const auto source = index_.source(schedule_.ranks[rank][k]);
        if (!source || !*source || source->rank == static_cast<std::int32_t>(rank)) continue;
        const auto from = static_cast<std::size_t>(source->rank), at = static_cast<std::size_t>(source->at);
        const bool down = from < rank;
        lines += fmt::format("M{:.6g} {:.6g}L{:.6g} {:.6g}", left + x_of(timeline_.ranks[from][at].end),
                             y_of(from) + (down ? bar : 0), left + x_of(timeline_.ranks[rank][k].start),
                             y_of(rank) + (down ? 0 : bar));
      }
    return lines.empty() ? "" : fmt::format("<path class=\"message\" d=\"{}\"/>\n", lines);
  }

  std::string legend(double y) const {
    std::string text;
    double x = left;
    const auto add = [&](std::string_view css, std::string_view meaning) {
      text += fmt::format(
          "<rect class=\"{}\" x=\"{:.6g}\" y=\"{:.6g}\" width=\"12\" height=\"12\"/>"
          "<text class=\"left\" x=\"{:.6g}\" y=\"{:.6g}\">{}</text>\n",
          css, x, y, x + 17, y + 10, meaning);
      x += 140;
    };
    for (std::size_t k = 0; k < fills.size(); ++k)
      if (used_[k]) add({meanings[k], 1}, meanings[k]);
    add("idle", "idle");
    return text;
  }

  const plan::Schedule& schedule_;
  const plan::Timeline& timeline_;
  const plan::ScheduleIndex index_;
  double scale_ = 0;
  bool with_stages_ = false;  // where a rank has several, and all boxes have room for it
  std::array<bool, 5> used_ = {};
};

}  // namespace

std::string schedule_svg(const plan::Schedule& schedule, const plan::Timeline& timeline, const std::string& title) {
  return Drawing(schedule, timeline).text(title);
}

}  // namespace shardproof::harness
