// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_svg.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/html.hpp"

namespace shardproof::harness {
namespace {

constexpr double width = 1160, left = 62, row = 26, top = 34;
// Okabe and Ito's colours, which people with any colour vision tell apart; in the order of ActionKind.
constexpr std::array<const char*, 5> fills = {"#56b4e9", "#e69f00", "#009e73", "#f0c050", "#cc79a7"};
constexpr std::array<const char*, 5> meanings = {"F forward", "I input gradient", "W weight gradient",
                                                 "B both gradients", "U update"};

std::string legend(double y) {
  std::string text;
  double x = left;
  for (std::size_t k = 0; k < fills.size(); ++k) {
    text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        x, y, fills[k], x + 17, y + 10, meanings[k]);
    x += 140;
  }
  return text + fmt::format(
                    "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"#ddd\"/>"
                    "<text x=\"{}\" y=\"{}\">idle</text>\n",
                    x, y, x + 17, y + 10);
}

}  // namespace

std::string schedule_svg(const plan::Schedule& schedule, const plan::Timeline& timeline, const std::string& title) {
  bool several_stages = false;
  for (const auto& rank : schedule.ranks)
    for (const plan::Action& a : rank) several_stages = several_stages || a.stage != rank.front().stage;
  const double height = top + row * static_cast<double>(schedule.ranks.size()) + 34;
  const double scale = timeline.makespan > 0 ? width / timeline.makespan : 0;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"20\" font-size=\"13\">{3}</text>\n",
      left + width + 12, height, left,
      html::escaped(fmt::format("{}: makespan {:.6g}, bubble {:.4g} of all ranks' time", title, timeline.makespan,
                                timeline.bubble_fraction())));
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const double y = top + row * static_cast<double>(rank);
    text += fmt::format(
        "<text x=\"4\" y=\"{}\">rank {}</text>\n<rect x=\"{}\" y=\"{}\" width=\"{}\" "
        "height=\"{}\" fill=\"#ddd\"/>\n",
        y + 16, rank, left, y, width, row - 4);
    for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
      const plan::Action& a = schedule.ranks[rank][k];
      const plan::Span& span = timeline.ranks[rank][k];
      const double x = left + scale * span.start, w = std::max(scale * (span.end - span.start), 1.0);
      text += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
          "stroke=\"white\" stroke-width=\"0.6\"><title>{}: {:.6g} to {:.6g}</title></rect>\n",
          x, y, w, row - 4, fills[static_cast<std::size_t>(a.kind)], print(a), span.start, span.end);
      const auto fits = [&](const std::string& s) { return w > 7.0 * static_cast<double>(s.size()); };
      std::string label = fmt::format("{}", a.microbatch);
      if (const std::string both = fmt::format("{}:{}", a.stage, a.microbatch); several_stages && fits(both))
        label = both;
      if (fits(label))
        text += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x + w / 2, y + 15, label);
    }
  }
  return text + legend(height - 22) + "</svg>\n";
}

}  // namespace shardproof::harness
