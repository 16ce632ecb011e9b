// SPDX-License-Identifier: Apache-2.0
#include "harness/html.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/text.hpp"

namespace shardproof::harness::html {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string readable(double value) {
  if (!std::isfinite(value)) return "not finite";
  const double size = std::fabs(value);
  return size >= 1000 && size < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string figure_cell(std::size_t of_case, std::string_view figure, double value, std::string_view text) {
  return fmt::format("<td data-case=\"{}\" data-figure=\"{}\" data-value=\"{}\">{}</td>", of_case, escaped(figure),
                     number(value), escaped(text));
}

std::string figure_cell(std::size_t of_case, std::string_view figure, double value) {
  return figure_cell(of_case, figure, value, readable(value));
}

std::string count_cell(std::string_view attributes, std::int64_t value, std::string_view text) {
  return fmt::format("<td {} data-value=\"{}\">{}</td>", attributes, value, escaped(text));
}

std::string bar(const std::vector<BarPart>& parts, std::string_view label) {
  std::string out = fmt::format(
      "<svg class=\"bar\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\">",
      escaped(label));
  double left = 0;
  for (const BarPart& part : parts) {
    const double width = std::isfinite(part.share) ? 100 * std::clamp(part.share, 0.0, 1.0) : 0;
    if (width > 0)
      out += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" width=\"{:.2f}\" height=\"10\"/>", part.css, left, width);
    left += width;
  }
  return out + "</svg>";
}

}  // namespace shardproof::harness::html
