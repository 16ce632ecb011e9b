// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "harness/html.hpp"
#include "harness/schedule_options.hpp"
#include "impl/plan/placement.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::harness {
namespace {

constexpr double width = 1160, left = 62, top = 50, bar = 22, row = 32;  // rows apart, so that messages are seen
// Okabe and Ito's colours, which people with any colour vision tell apart; in the order of ActionKind.
constexpr std::array<int, 5> fills = {0x56b4e9, 0xe69f00, 0x009e73, 0xf0c050, 0xcc79a7};
constexpr std::array<const char*, 5> meanings = {"F forward", "I input gradient", "W weight gradient",
                                                 "B both gradients", "U update"};

double rounded(double pixels) { return std::round(10 * pixels) / 10; }

/// "#56b4e9", of which `part` is white.
std::string lighter(int colour, double part) {
  std::string text = "#";
  for (const int shift : {16, 8, 0}) {
    const int value = (colour >> shift) & 0xff;
    text += fmt::format("{:02x}", value + static_cast<int>(part * (255 - value)));
  }
  return text;
}

class Drawing {
 public:
  Drawing(const plan::Schedule& schedule, const plan::Timeline& timeline, const plan::ActionCosts& costs)
      : schedule_(schedule),
        timeline_(timeline),
        costs_(costs),
        index_(schedule, plan::extent_of(schedule)),
        placement_(schedule) {
    if (timeline.makespan > 0) scale_ = width / timeline.makespan;
    if (scale_ > 1) scale_ = std::floor(scale_);  // whole pixels where costs are whole
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      shades_ = std::max(shades_, stages_of(rank).size());
      for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
        const auto kind = static_cast<std::size_t>(schedule.ranks[rank][k].kind);
        used_[kind] = true;
        boxed_[kind] = boxed_[kind] || timeline.ranks[rank][k].end > timeline.ranks[rank][k].start;
        sliced_ = sliced_ || schedule.ranks[rank][k].slice != plan::Action::whole;
        has_blocks_ = has_blocks_ || in_block(rank, k);
      }
    }
    with_stages_ = shades_ > 1;
    if (with_stages_) with_stages_ = (lettered_ = kinds_with_room(6)) == boxed_;
    if (!with_stages_) lettered_ = kinds_with_room(0);
  }

  std::string text(const std::string& title) {
    const auto ranks = static_cast<double>(schedule_.ranks.size());
    const double height = top + row * ranks + 28;
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.6g} {1:.6g}\" width=\"{0:.6g}\" "
        "height=\"{1:.6g}\">\n<style>text{{font:11px sans-serif;text-anchor:middle}}.left{{text-anchor:start}}"
        "rect{{stroke:#fff;stroke-width:.6}}.idle{{fill:#ddd}}.message{{fill:none;stroke:#555;stroke-width:.7}}",
        left + width + 12, height);
    if (has_blocks_) text += ".block{fill:none;stroke:#000;stroke-width:1.4}";
    for (std::size_t kind = 0; kind < fills.size(); ++kind)
      for (std::size_t shade = 0; used_[kind] && shade < shades_; ++shade)
        text += fmt::format(".{}{{fill:{}}}", css_of(kind, shade), fill_of(kind, shade));
    text += fmt::format(
        "</style>\n<rect width=\"{:.6g}\" height=\"{:.6g}\" fill=\"#fff\"/>\n"
        "<text class=\"left\" x=\"{:.6g}\" y=\"20\">{}</text>\n"
        "<text class=\"left\" x=\"{:.6g}\" y=\"36\">{}</text>\n",
        left + width + 12, height, left, html::escaped(title), left,
        html::escaped(fmt::format("{}: makespan {:.6g}, bubble {:.4g} % of all ranks' time", text_of(costs_),
                                  timeline_.makespan, 100 * timeline_.bubble_fraction())));
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      text += fmt::format("<rect class=\"idle\" x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{}\"/>\n", left,
                          y_of(rank), x_of(timeline_.makespan), bar);
    text += messages();  // behind the boxes of ranks that they pass
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) text += row_of(rank);
    return text + legend(height - 18) + "</svg>\n";
  }

 private:
  const std::vector<std::int64_t>& stages_of(std::size_t rank) const {
    return placement_.stages_of(static_cast<std::int64_t>(rank));
  }
  double fill_part(std::size_t shade) const {
    return shades_ > 1 ? 0.6 * static_cast<double>(shade) / static_cast<double>(shades_ - 1) : 0;
  }
  std::string fill_of(std::size_t kind, std::size_t shade) const { return lighter(fills[kind], fill_part(shade)); }
  /// "F", and "F1" of a rank's second stage.
  static std::string css_of(std::size_t kind, std::size_t shade) {
    return shade == 0 ? std::string(1, meanings[kind][0]) : fmt::format("{}{}", meanings[kind][0], shade);
  }
  std::string css_of(std::size_t rank, const plan::Action& a) const {
    const auto shade = std::ranges::lower_bound(stages_of(rank), a.stage) - stages_of(rank).begin();
    return css_of(static_cast<std::size_t>(a.kind), static_cast<std::size_t>(shade));
  }
  static double y_of(std::size_t rank) { return top + row * static_cast<double>(rank); }
  double x_of(double time) const { return rounded(scale_ * time); }
  std::string label_of(const plan::Action& a) const {
    std::string label = with_stages_ ? fmt::format("{}:{}", a.stage, a.microbatch) : fmt::format("{}", a.microbatch);
    if (a.slice != plan::Action::whole) label += fmt::format(".{}", a.slice);
    return label;
  }
  /// A digit of the font is about 6 pixels wide.
  static bool fits(const std::string& label, double w) { return w > 6.5 * static_cast<double>(label.size()); }

  /// The kinds all of whose boxes have room for their labels, with so many pixels between two.
  std::array<bool, 5> kinds_with_room(double between) const {
    std::array<bool, 5> result = boxed_;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      for (std::size_t k = 0; k < schedule_.ranks[rank].size(); ++k) {
        const plan::Action& a = schedule_.ranks[rank][k];
        const auto [start, end] = timeline_.ranks[rank][k];
        bool& room = result[static_cast<std::size_t>(a.kind)];
        room = room && (end == start || fits(label_of(a), x_of(end) - x_of(start) - between));
      }
    return result;
  }

  std::string row_of(std::size_t rank) const {
    std::string text = fmt::format(
        "<g transform=\"translate({:.6g},{:.6g})\"><text class=\"left\" x=\"-58\" y=\"15\">rank {}</text>\n", left,
        y_of(rank), rank);
    std::string instants;  // over their neighbours
    for (std::size_t k = 0; k < schedule_.ranks[rank].size(); ++k) {
      const plan::Action& a = schedule_.ranks[rank][k];
      const plan::Span& span = timeline_.ranks[rank][k];
      const double x = x_of(span.start), w = x_of(span.end) - x;
      const bool instant = span.end == span.start;
      (instant ? instants : text) += fmt::format(
          "<rect class=\"{}\" x=\"{:.6g}\" width=\"{:.6g}\" height=\"{}\"><title>{}: {:.6g} to {:.6g}</title></rect>",
          css_of(rank, a), instant ? x - 1 : x, instant ? 2 : rounded(w), bar, print(a), span.start, span.end);
      if (instant) continue;
      if (lettered_[static_cast<std::size_t>(a.kind)])
        text += fmt::format("<text x=\"{:.6g}\" y=\"15\">{}</text>", rounded(x + w / 2), label_of(a));
      text += "\n";
    }
    std::string frames;
    for (std::size_t k = 0; k < schedule_.ranks[rank].size(); ++k)
      if (in_block(rank, k)) {
        const double x = x_of(timeline_.ranks[rank][k].start);
        frames += fmt::format("<rect class=\"block\" x=\"{:.6g}\" width=\"{:.6g}\" height=\"{}\"/>\n", x,
                              rounded(x_of(timeline_.ranks[rank][k + 1].end) - x), bar);
      }
    return text + instants + frames + "</g>\n";
  }

  /// Whether it is the F of a block, the next action its B.
  bool in_block(std::size_t rank, std::size_t at) const {
    return costs_.overlapped && plan::begins_block(schedule_.ranks[rank], at);
  }

  /// From the end of what makes each to the start of what waits for it; a block begins and ends as one.
  std::string messages() const {
    std::string lines;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      for (std::size_t k = 0; k < schedule_.ranks[rank].size(); ++k) {
        const auto source = index_.source(schedule_.ranks[rank][k]);
        if (!source || !*source || source->rank == static_cast<std::int32_t>(rank)) continue;
        const auto from = static_cast<std::size_t>(source->rank), at = static_cast<std::size_t>(source->at);
        const bool down = from < rank;
        const double end = timeline_.ranks[from][at + in_block(from, at)].end;
        const double start = timeline_.ranks[rank][k > 0 && in_block(rank, k - 1) ? k - 1 : k].start;
        lines += fmt::format("M{:.6g} {:.6g}L{:.6g} {:.6g}", left + x_of(end), y_of(from) + (down ? bar : 0),
                             left + x_of(start), y_of(rank) + (down ? 0 : bar));
      }
    return lines.empty() ? "" : fmt::format("<path class=\"message\" d=\"{}\"/>\n", lines);
  }

  std::string legend(double y) const {
    std::string text;
    double x = left;
    const auto say = [&](std::string_view meaning) {
      text += fmt::format("<text class=\"left\" x=\"{:.6g}\" y=\"{:.6g}\">{}</text>\n", x, y + 10, meaning);
      x += 5.8 * static_cast<double>(meaning.size()) + 18;
    };
    const auto add = [&](std::string_view css, std::string_view meaning) {
      text += fmt::format("<rect class=\"{}\" x=\"{:.6g}\" y=\"{:.6g}\" width=\"12\" height=\"12\"/>", css, x, y);
      x += 17;
      say(meaning);
    };
    for (std::size_t k = 0; k < fills.size(); ++k)
      if (used_[k]) add({meanings[k], 1}, meanings[k]);
    add("idle", "idle");
    if (has_blocks_) add("block", "F and B as one block");
    text += fmt::format("<line class=\"message\" x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\"/>", x, y + 6,
                        x + 12, y + 6);
    x += 17;
    say("message");
    if (shades_ > 1) say("lighter: a rank's later stages");
    if (std::ranges::find(lettered_, true) != lettered_.end())
      say(fmt::format("numbers, from 0: {}microbatch{}", with_stages_ ? "stage:" : "", sliced_ ? ".slice" : ""));
    return text;
  }

  const plan::Schedule& schedule_;
  const plan::Timeline& timeline_;
  const plan::ActionCosts& costs_;
  const plan::ScheduleIndex index_;
  const plan::Placement placement_;
  double scale_ = 0;
  std::size_t shades_ = 1;    // the most stages of a rank
  bool with_stages_ = false;  // where a rank has several, and all boxes have room for it
  std::array<bool, 5> used_ = {}, boxed_ = {}, lettered_ = {};  // kinds; that take time; whose boxes have labels
  bool sliced_ = false, has_blocks_ = false;
};

}  // namespace

std::string schedule_svg(const plan::Schedule& schedule, const plan::Timeline& timeline, const plan::ActionCosts& costs,
                         const std::string& title) {
  return Drawing(schedule, timeline, costs).text(title);
}

}  // namespace shardproof::harness
