// SPDX-License-Identifier: Apache-2.0
#include "harness/report_csv.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "harness/csv.hpp"
#include "harness/held.hpp"
#include "harness/tracks.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

/// Names in the order in which they first appear, and their cells in a row.
class Columns {
 public:
  void set(std::vector<std::string>& cells, const std::string& name, std::string cell) {
    const auto [place, is_new] = places_.emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    if (cells.size() <= place->second) cells.resize(place->second + 1);
    cells[place->second] = std::move(cell);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::string join(const std::vector<std::string>& cells, std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < columns; ++i) {
    if (i < cells.size()) line += cells[i];
    line += i + 1 < columns ? "," : "";
  }
  return line;
}

}  // namespace

std::string report_csv(const ReportData& data) {
  Columns fields, figures, counts;
  struct Row {
    std::vector<std::string> fields, figures, counts;
  };
  std::vector<Row> rows;
  for (const ReportedCase& reported : data.cases()) {
    const Record& r = reported.record;
    Row& row = rows.emplace_back();
    const auto text = [&](const char* name, std::string_view value) { fields.set(row.fields, name, csv_field(value)); };
    const auto whole = [&](const char* name, std::int64_t value) {
      fields.set(row.fields, name, fmt::format("{}", value));
    };
    text("case", r.case_text), text("workload", r.workload), text("workload_hash", r.workload_hash);
    text("strategy", r.strategy), whole("ranks", r.ranks), text("track", name_of(r.track));
    text("device", r.device), text("transport", r.transport), text("contract", r.contract);
    whole("delays", r.delays), text("injections", workload::joined(r.injections, "; "));
    text("verdict", name_of(r.verdict)), text("reason", r.reason), text("judged", r.judged);
    text("digest", r.digest), whole("digest_steps", r.digest_steps), whole("compared", r.compared);
    text("rerun", r.rerun);
    if (r.fabric) text("fabric", to_text(*r.fabric));
    const Environment& e = data.environments()[reported.environment];
    text("host", e.host), text("processor", e.processor), whole("cores", e.cores);
    text("commit", e.commit), text("dirty", e.dirty ? "true" : "false");
    for (const auto& [name, value] : r.figures)
      figures.set(row.figures, name, std::isfinite(value) ? fmt::format("{}", value) : "nan");
    for (const Held& h : held(r, "", "")) {
      counts.set(row.counts, h.name, fmt::format("{}", std::ranges::max(h.counted)));
      if (!h.forms.empty()) counts.set(row.counts, "form_" + h.name, fmt::format("{}", std::ranges::max(h.forms)));
    }
  }
  std::vector<std::string> heads;
  for (const Columns* columns : {&fields, &figures, &counts})
    for (const std::string& name : columns->names()) heads.push_back(csv_field(name));
  std::string text = join(heads, heads.size()) + "\r\n";
  for (const Row& row : rows) {
    text += join(row.fields, fields.names().size());
    if (!figures.names().empty()) text += "," + join(row.figures, figures.names().size());
    if (!counts.names().empty()) text += "," + join(row.counts, counts.names().size());
    text += "\r\n";
  }
  return text;
}

}  // namespace shardproof::harness
