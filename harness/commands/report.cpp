// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/report_files.hpp"
#include "harness/report_table.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

extern const Command report_command;

namespace {

ExitCode run(std::span<const std::string> args) {
  std::vector<std::string> folders;
  std::string out;
  bool mixed = false;
  Options options(report_command);
  options.words(folders, "FOLDER", "What runs wrote")
      .text("--out", out, "FOLDER", "Where the report goes (default: into the folder, where it is one)")
      .flag("--mixed", mixed, "Also folders whose records were made at different commits or on different machines");
  if (!options.parse(args)) return ExitCode::pass;
  if (folders.empty()) throw BadInput("nothing to report on: name the folder of a run");
  if (folders.size() > 1 && out.empty())
    throw BadInput(fmt::format("{} folders are given: --out says where their report goes", folders.size()));

  const ReportData data = read_reported(folders, mixed);
  const std::filesystem::path folder = out.empty() ? folders.front() : out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw WriteError(fmt::format("cannot write {}: {}", folder.string(), error.message()));
  write_reports(folder, data);
  for (const ReportedRun& run : data.runs)
    if (!run.exit_code) say(stderr, printable(fmt::format("shardproof: {}: the run did not end\n", run.folder)));
  say(stdout, table_of(data) + fmt::format("report  {}: {}\n", folder.string(), workload::joined(report_names, ", ")));
  return ExitCode::pass;
}

}  // namespace

const Command report_command = {"report", "Writes the page, the table and the benchmark file about what runs wrote",
                                "shardproof report results/runs/tiny", run};

}  // namespace shardproof::harness
