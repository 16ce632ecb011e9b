// SPDX-License-Identifier: Apache-2.0
// Memory and traffic beside their forms.
#include <algorithm>

#include <fmt/format.h>

#include "harness/held.hpp"
#include "harness/html.hpp"
#include "harness/options.hpp"
#include "harness/report_sections.hpp"

namespace shardproof::harness {
namespace {

/// Counted, form, and whether they are equal: of several ranks the largest.
std::string cells(std::size_t index, const Held& h, bool as_bytes) {
  const auto text = [&](std::int64_t value) { return as_bytes ? print_bytes(value) : fmt::format("{}", value); };
  const auto cell = [&](const char* what, std::int64_t value) {
    return html::count_cell(fmt::format("data-case=\"{}\" data-{}=\"{}\"", index + 1, what, html::escaped(h.name)),
                            value, text(value));
  };
  const std::string counted = cell("ledger", std::ranges::max(h.counted));
  if (h.forms.empty()) return counted + "<td class=\"note\">&ndash;</td><td></td>";
  return counted + cell("form", std::ranges::max(h.forms)) +
         (h.equal ? "<td>equal</td>" : "<td class=\"differs\">differs</td>");
}

std::string memory_name(std::string_view name) {
  name.remove_prefix(std::string_view("memory_").size());
  name.remove_suffix(std::string_view("_bytes").size());
  return std::string(name);
}

std::string section(std::string_view title, std::string_view caption, std::string_view heads, const std::string& rows) {
  if (rows.empty()) return "";
  return fmt::format(
      "<h2>{}</h2>\n<div "
      "class=\"wide\"><table><caption>{}</caption><thead><tr><th>case{}</tr></thead><tbody>\n{}</tbody>"
      "</table></div>\n",
      title, caption, heads, rows);
}

}  // namespace

std::string memory_section(const ReportData& data, std::span<const std::size_t> shown) {
  std::string rows;
  for (const std::size_t i : shown) {
    const std::vector<Held> all = held(data.cases()[i].record, "memory_", "_bytes");
    std::int64_t most = 1;
    for (const Held& h : all) most = std::max({most, std::ranges::max(h.counted)});
    for (const Held& h : all) {
      const auto share = [&](const std::vector<std::int64_t>& bytes) {
        return bytes.empty() ? 0 : static_cast<double>(std::ranges::max(bytes)) / static_cast<double>(most);
      };
      rows +=
          fmt::format("<tr>{}<td>{}</td>{}<td>{}{}</td></tr>\n", case_head(data, i), html::escaped(memory_name(h.name)),
                      cells(i, h, true), html::bar({{"counted", share(h.counted)}}, "counted"),
                      h.forms.empty() ? "" : html::bar({{"form", share(h.forms)}}, "form"));
    }
  }
  return section("Memory", "Of the rank that needs most; the upper bar is counted, the lower one the form",
                 "<th>category<th>counted<th>form<th><th>of the case's largest", rows);
}

std::string traffic_section(const ReportData& data, std::span<const std::size_t> shown) {
  std::string rows;
  for (const std::size_t i : shown)
    for (const std::string_view unit : {"_calls", "_payload_bytes", "_wire_bytes"})
      for (const Held& h : held(data.cases()[i].record, "traffic_", unit)) {
        const TrafficName of = traffic_name(h.name);
        rows += fmt::format("<tr>{}<td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}</tr>\n", case_head(data, i),
                            html::escaped(of.axis), html::escaped(of.kind), html::escaped(of.purpose),
                            unit == "_calls"           ? "calls"
                            : unit == "_payload_bytes" ? "payload"
                                                       : "wire",
                            cells(i, h, unit != "_calls"));
      }
  return section("Traffic", "All ranks together, the whole training",
                 "<th>axis<th>kind<th>purpose<th>of<th>counted<th>form<th>", rows);
}

}  // namespace shardproof::harness
