// SPDX-License-Identifier: Apache-2.0
#include "harness/report_files.hpp"

#include <fmt/format.h>

#include "harness/json_fields.hpp"
#include "harness/report_benchmark.hpp"
#include "harness/report_csv.hpp"
#include "harness/report_html.hpp"
#include "harness/saved_run.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_timelines = 8;

void refuse_mixture(const std::string& folder, const std::vector<Record>& records) {
  for (std::size_t i = 1; i < records.size(); ++i)
    if (records[i].environment != records[0].environment)
      throw BadInput(fmt::format("{}: records 1 and {} are of different runs ({}): --mixed reports on them together",
                                 (fs::path(folder) / "records.jsonl").string(), i + 1,
                                 difference(records[0].environment, records[i].environment)));
}

}  // namespace

std::vector<Timeline> read_timelines(const fs::path& folder, std::span<const ReportedCase> cases) {
  std::vector<Timeline> timelines;
  for (std::size_t i = 0; i < cases.size() && timelines.size() < most_timelines; ++i) {
    const fs::path path = folder / (i == 0 ? "trace.json" : fmt::format("trace-{}.json", i + 1));
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    timelines.push_back(read_timeline(path));
    timelines.back().title = shown_name(cases[i].record);
  }
  return timelines;
}

ReportData read_reported(std::span<const std::string> folders, bool mixed) {
  ReportData data;
  std::vector<std::string> findings;
  for (const std::string& folder : folders) try {
      const SavedRun run = read_run(folder);
      if (!mixed) refuse_mixture(folder, run.records);
      const std::size_t before = data.cases().size();
      for (const Record& record : run.records) data.add(record);
      for (Timeline& timeline : read_timelines(folder, std::span(data.cases()).subspan(before)))
        data.timelines.push_back(std::move(timeline));
      data.runs.push_back({folder, run.command, run.exit_code});
    } catch (const BadInput& error) {
      findings.push_back(error.what());
    }
  throw_findings(findings);
  return data;
}

void write_reports(const fs::path& folder, const ReportData& data) {
  const std::string texts[] = {report_html(data), report_csv(data), benchmark_json(data)};
  static_assert(std::size(texts) == report_names.size());
  for (std::size_t i = 0; i < report_names.size(); ++i) write_file(folder / report_names[i], texts[i]);
}

}  // namespace shardproof::harness
