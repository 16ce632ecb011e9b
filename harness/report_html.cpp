// SPDX-License-Identifier: Apache-2.0
#include "harness/report_html.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/html.hpp"
#include "harness/options.hpp"
#include "harness/report_chart.hpp"
#include "harness/report_sections.hpp"
#include "harness/text.hpp"

namespace shardproof::harness {
namespace {

// Okabe and Ito's colours, which people with any colour vision tell apart.
constexpr std::string_view style = R"(
:root{color-scheme:light dark;--line:#8884;--quiet:#767676;--blue:#0072b2;--orange:#e69f00;--green:#009e73;
--red:#d55e00;--pink:#cc79a7;--sky:#56b4e9}
body{font:15px/1.45 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;
overflow-wrap:break-word}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;margin:.6rem 0}
caption{text-align:left;color:var(--quiet);padding:.2rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{white-space:nowrap}td[data-value]{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
th[scope=row]{font-weight:normal;min-width:17rem}code{font-size:.85em;overflow-wrap:anywhere}pre{white-space:pre-wrap;margin:0}
td>code,td>pre{display:block;min-width:18rem}
.verdict{font-weight:600}.pass{color:var(--green)}.fail,.error{color:var(--red)}.note{color:var(--quiet)}
.differs{color:var(--red);font-weight:600}figure{margin:1rem 0}figcaption{font-weight:600}
svg{font:11px system-ui,sans-serif}svg text{fill:currentColor}.chart{width:100%;max-width:44rem}
.timeline{width:100%;min-width:50rem}.end{text-anchor:end}.middle{text-anchor:middle}
svg text.on{fill:#000;font-size:9px}.grid{stroke:var(--line)}.ideal{stroke:var(--quiet);stroke-dasharray:2 4}
.line{fill:none;stroke:currentColor;stroke-width:2}.spread{stroke:currentColor;stroke-width:1.2}
circle{fill:currentColor}.dashed .line{stroke-dasharray:6 4}.hollow{fill:Canvas;stroke:currentColor;stroke-width:1.5}
.c0{color:var(--blue)}.c1{color:var(--red)}.c2{color:var(--green)}.c3{color:var(--pink)}.c4{color:var(--orange)}
.c5{color:var(--sky)}.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;padding:0;font-size:.85rem}
.legend li{min-width:0}.legend svg{color:inherit}.key{width:28px;height:8px;margin-right:.4rem}
.swatch{width:12px;height:12px;margin-right:.4rem}
.bar{width:9rem;height:10px;display:block;background:#8882}.compute,.action,.counted{fill:var(--sky)}
.action{fill:var(--orange)}.communication{fill:var(--green)}.wait{fill:var(--pink)}.copy{fill:var(--blue)}
.host{fill:#999}.form{fill:var(--blue)}.bubble{fill:var(--pink)}
)";

constexpr std::array verdict_order = {Verdict::error,        Verdict::fail,        Verdict::mistrusted,
                                      Verdict::inconclusive, Verdict::unsupported, Verdict::skipped,
                                      Verdict::pass};

std::string head(const ReportData& data) {
  std::string out = "<header><h1>Shardproof report</h1>\n";
  for (const ReportedRun& run : data.runs) {
    const std::string code =
        run.exit_code ? fmt::format("exit code {}", *run.exit_code) : "the run did not end, or is being written";
    out += fmt::format("<p>{}: <code>{}</code></p>\n", html::escaped(code),
                       html::escaped(run.command.empty() ? run.folder : run.command));
  }
  return out + "</header>\n";
}

std::string row_of_case(const ReportData& data, std::size_t index, bool with_reason) {
  const Record& r = data.cases()[index].record;
  std::string out =
      fmt::format("<tr>{}<td class=\"verdict {}\" data-case=\"{}\" data-verdict=\"{}\">{}</td>", case_head(data, index),
                  name_of(r.verdict), index + 1, name_of(r.verdict), name_of(r.verdict));
  if (with_reason)
    return out + fmt::format("<td><pre>{}</pre></td><td><code>{}</code></td></tr>\n", html::escaped(r.reason),
                             html::escaped(r.rerun));
  return out + fmt::format("<td>{}</td><td>{}</td>{}<td><code>{}</code></td></tr>\n", html::escaped(r.device),
                           html::escaped(r.judged),
                           html::count_cell(fmt::format("data-case=\"{}\" data-field=\"compared\"", index + 1),
                                            r.compared, fmt::format("{}", r.compared)),
                           html::escaped(r.digest));
}

std::string table_of_cases(const ReportData& data, bool passed) {
  std::string rows;
  for (const Verdict verdict : verdict_order)
    for (std::size_t i = 0; i < data.cases().size(); ++i)
      if (data.cases()[i].record.verdict == verdict && (verdict == Verdict::pass) == passed)
        rows += row_of_case(data, i, !passed);
  if (rows.empty()) return "";
  const std::string_view heads = passed ? "<th>device<th>judged<th>elements compared<th>digest" : "<th>reason<th>rerun";
  return fmt::format(
      "<div class=\"wide\"><table><thead><tr><th>case<th>verdict{}</tr></thead><tbody>\n{}</tbody></table></div>\n",
      heads, rows);
}

}  // namespace

std::vector<std::size_t> detailed_cases(const ReportData& data) {
  std::vector<std::size_t> cases(data.cases().size());
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i] = i;
  const auto rank = [&](std::size_t i) {
    const Record& r = data.cases()[i].record;
    return r.verdict != Verdict::pass ? 0 : is_ranked(r) ? 1 : 2;
  };
  std::ranges::stable_sort(cases, {}, rank);
  cases.resize(std::min(cases.size(), most_detailed));
  return cases;
}

std::string case_head(const ReportData& data, std::size_t index) {
  return fmt::format("<th scope=\"row\">{}: {}</th>", index + 1, html::escaped(shown_name(data.cases()[index].record)));
}

std::string verdict_section(const ReportData& data) {
  std::string counts, names;
  for (const Verdict verdict : verdict_order) {
    const auto count = std::ranges::count_if(data.cases(), [&](const auto& c) { return c.record.verdict == verdict; });
    names += fmt::format("<th>{}", name_of(verdict));
    counts += html::count_cell(fmt::format("data-count=\"{}\"", name_of(verdict)), count, fmt::format("{}", count));
  }
  std::string out = fmt::format(
      "<h2>Verdicts</h2>\n<div class=\"wide\"><table><thead><tr><th>cases{}</tr></thead><tbody><tr>{}{}</tr></tbody>"
      "</table></div>\n",
      names, html::count_cell("data-count=\"cases\"", std::ssize(data.cases()), fmt::format("{}", data.cases().size())),
      counts);
  if (data.cases().empty()) return out + "<p>No case ended.</p>\n";
  out += table_of_cases(data, false);
  const std::string passed = table_of_cases(data, true);
  return out + (passed.empty() ? "" : fmt::format("<details open><summary>Passed</summary>{}</details>\n", passed));
}

std::string timeline_section(const ReportData& data) {
  std::string out;
  for (const Timeline& timeline : data.timelines) out += "<div class=\"wide\">" + timeline_picture(timeline) + "</div>";
  if (out.empty()) return "";
  std::string legend;
  for (const std::string_view lane : {"action", "compute", "communication", "wait", "copy"})
    legend += fmt::format(
        "<li><svg class=\"swatch\" aria-hidden=\"true\" viewBox=\"0 0 1 1\"><rect class=\"{}\" "
        "width=\"1\" height=\"1\"/></svg>{}</li>",
        lane, lane);
  return fmt::format(
      "<h2>Timeline</h2>\n<p class=\"note\">Action: stage, F, B, I or W, and microbatch. Spans too narrow to see are "
      "drawn as one.</p><ul class=\"legend\">{}</ul>\n{}",
      legend, out);
}

std::string figure_section(const ReportData& data, std::span<const std::size_t> shown) {
  std::string rows;
  for (const std::size_t i : shown)
    for (const auto& [name, value] : data.cases()[i].record.figures)
      rows += fmt::format("<tr>{}<td>{}</td>{}</tr>\n", case_head(data, i), html::escaped(name),
                          html::figure_cell(i + 1, name, value));
  if (rows.empty()) return "";
  return fmt::format(
      "<h2>Every figure</h2>\n<details><summary>As measured, of each case</summary><div "
      "class=\"wide\"><table><thead><tr>"
      "<th>case<th>figure<th>value</tr></thead><tbody>\n{}</tbody></table></div></details>\n",
      rows);
}

std::string environment_section(const ReportData& data) {
  std::string out = "<h2>Environment</h2>\n";
  for (std::size_t k = 0; k < data.environments().size(); ++k) {
    const Environment& e = data.environments()[k];
    std::string rows;
    const auto row = [&](std::string_view name, std::string_view value) {
      rows += fmt::format("<tr><th scope=\"row\">{}</th><td data-environment=\"{}\">{}</td></tr>\n",
                          html::escaped(name), html::escaped(name), html::escaped(value));
    };
    row("host", e.host), row("system", e.system), row("processor", e.processor);
    row("cores", fmt::format("{}", e.cores)), row("memory", print_bytes(e.memory_bytes));
    row("commit", e.commit + (e.dirty ? ", changed" : "")), row("version", e.version), row("preset", e.preset);
    row("compiler", e.compiler), row("flags", e.flags);
    for (const auto& [name, value] : e.libraries) row(name, value);
    for (const auto& [name, value] : e.variables) row(name, value);
    const auto cases = std::ranges::count(data.cases(), k, &ReportedCase::environment);
    out += fmt::format(
        "<div class=\"wide\"><table><caption>Environment {}: {}</caption><tbody>\n{}</tbody></table></div>\n", k + 1,
        counted(cases, "case"), rows);
  }
  return out;
}

std::string report_html(const ReportData& data) {
  const auto shown = detailed_cases(data);
  std::string limits;
  if (shown.size() < data.cases().size())
    limits += fmt::format(
        "<p class=\"note\">Memory, traffic and single figures: of the {} most telling cases of {}; "
        "records.csv has all.</p>\n",
        shown.size(), data.cases().size());
  if (data.without_ledgers() > 0)
    limits += fmt::format("<p class=\"note\">Ledgers of {} are in records.jsonl only.</p>\n",
                          counted(data.without_ledgers(), "passing case"));
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
             "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta "
             "name=\"viewport\" content=\"width=device-width\">\n<title>Shardproof report</title>\n<style>{}</style>\n"
             "</head>\n<body>\n",
             style) +
         head(data) + "<main>\n" + verdict_section(data) + throughput_section(data) + time_section(data) +
         bubble_section(data) + limits + memory_section(data, shown) + traffic_section(data, shown) +
         timeline_section(data) + figure_section(data, shown) + environment_section(data) +
         "</main>\n</body>\n</html>\n";
}

}  // namespace shardproof::harness
