// SPDX-License-Identifier: Apache-2.0
// Pieces of a page that stands alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::harness::html {

/// As text and as an attribute's value, line ends and all. Control characters and what is no UTF-8 become '?'.
std::string escaped(std::string_view text);

/// The shortest decimal that reads back as the same number, whatever the locale; "null" where it is not finite.
std::string number(double value);
/// For people: four digits, "not finite" where it is not.
std::string readable(double value);

/// A table's cell that shows `text` and says its number exactly: data-figure, data-case, data-value.
std::string figure_cell(std::size_t of_case, std::string_view figure, double value, std::string_view text);
std::string figure_cell(std::size_t of_case, std::string_view figure, double value);
std::string count_cell(std::string_view attributes, std::int64_t value, std::string_view text);

/// An inline SVG of parts from left to right; each a CSS class and its share of the width, 0 to 1.
struct BarPart {
  std::string_view css;
  double share;
};
std::string bar(const std::vector<BarPart>& parts, std::string_view label);

}  // namespace shardproof::harness::html
