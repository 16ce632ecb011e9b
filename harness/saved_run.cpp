// SPDX-License-Identifier: Apache-2.0
#include "harness/saved_run.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace fs = std::filesystem;

namespace {

void read_summary(const fs::path& path, SavedRun& run) {
  const std::vector<Record>& records = run.records;
  const std::string origin = path.string();
  const nlohmann::ordered_json summary = parse_object(read_file(path), origin);
  std::vector<std::string> findings;
  Fields fields(summary, origin, findings);
  if (const std::string schema = fields.text("schema"); !schema.empty() && schema != summary_schema)
    fields.report(fmt::format("\"schema\" is \"{}\": this program reads \"{}\"", schema, summary_schema));
  run.command = fields.text("command");
  const std::int64_t code = fields.integer("exit_code", 0);
  if (const std::int64_t cases = fields.integer("cases", 0); cases != std::ssize(records))
    fields.report(fmt::format("\"cases\" is {}, but there are {} records", cases, records.size()));
  Fields verdicts(fields.object("verdicts"), origin + ": verdicts", findings);
  for (const std::string& name : verdict_names()) {
    const std::int64_t count = verdicts.integer(name, 0);
    const auto there = std::ranges::count(records, verdict_named(name), &Record::verdict);
    if (count != there) verdicts.report(fmt::format("\"{}\" is {}, but there are {} such records", name, count, there));
  }
  verdicts.finish();
  fields.has("nodes");  // for people: each record names the machine of process 0
  fields.finish();
  if (records.empty() && code == 0) fields.report("a run without a record did not pass");
  throw_findings(findings);
  run.exit_code = code;
}

std::vector<Record> parse_records(std::string_view text, const fs::path& path, bool may_be_empty) {
  std::vector<std::string> findings;
  std::vector<Record> records;
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string origin = fmt::format("{}:{}", path.string(), ++lines);
    if (end == text.size())
      findings.push_back(origin + ": the record does not end with a newline: it was cut off");
    else
      try {
        records.push_back(parse_record(text.substr(begin, end - begin), origin));
      } catch (const BadInput& error) {
        findings.push_back(error.what());
      }
    begin = end + 1;
  }
  if (lines == 0 && !may_be_empty) findings.push_back(path.string() + ": it holds no record");
  throw_findings(findings);
  return records;
}

}  // namespace

std::vector<Record> read_records(const fs::path& path, bool may_be_empty) {
  return parse_records(read_file(path), path, may_be_empty);
}

std::vector<Record> read_whole_records(const fs::path& path) {
  std::string text = read_file(path);
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  return parse_records(text, path, true);
}

SavedRun read_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw BadInput(fmt::format("{}: there is no such folder", folder.string()));
  const bool ended = fs::exists(folder / "summary.json", error);
  SavedRun run{.records = read_records(folder / "records.jsonl", ended)};
  if (ended) read_summary(folder / "summary.json", run);
  return run;
}

}  // namespace shardproof::harness
