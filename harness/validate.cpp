// SPDX-License-Identifier: Apache-2.0
#include "harness/validate.hpp"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/export_file.hpp"
#include "harness/json_fields.hpp"
#include "harness/options.hpp"
#include "harness/record.hpp"
#include "harness/suite.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/safetensors.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;

std::size_t check_records(const fs::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> findings;
  std::size_t records = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string origin = fmt::format("{}:{}", path.string(), ++records);
    if (end == text.size())
      findings.push_back(origin + ": the record does not end with a newline: it was cut off");
    else
      try {
        parse_record(std::string_view(text).substr(begin, end - begin), origin);
      } catch (const BadInput& error) {
        findings.push_back(error.what());
      }
    begin = end + 1;
  }
  if (records == 0) findings.push_back(path.string() + ": it holds no record");
  throw_findings(findings);
  return records;
}

void check_summary(const fs::path& path, std::size_t records) {
  const std::string origin = path.string();
  const nlohmann::ordered_json summary = parse_object(read_file(path), origin);
  std::vector<std::string> findings;
  Fields fields(summary, origin, findings);
  if (const std::string schema = fields.text("schema"); !schema.empty() && schema != summary_schema)
    fields.report(fmt::format("\"schema\" is \"{}\": this program reads \"{}\"", schema, summary_schema));
  fields.text("command");
  fields.integer("exit_code", 0);
  fields.object("verdicts");
  const std::int64_t cases = fields.integer("cases", 0);
  if (cases != static_cast<std::int64_t>(records))
    fields.report(fmt::format("\"cases\" is {}, but there are {} records", cases, records));
  fields.finish();
  throw_findings(findings);
}

std::string tensors(const fs::path& path, const std::string& workload_hash) {
  const safetensors::File file = safetensors::read(path);
  if (is_export(file) || !workload_hash.empty()) {
    std::vector<std::string> findings;
    for (const std::string& finding : export_findings(file, workload_hash))
      findings.push_back(fmt::format("{}: {}", path.string(), finding));
    throw_findings(findings);
  }
  std::int64_t bytes = 0;
  for (const safetensors::Entry& entry : file.entries) bytes += static_cast<std::int64_t>(entry.bytes.size());
  return counted(file.entries.size(), "tensor") + ", " + print_bytes(bytes);
}

std::string export_folder(const fs::path& path, const std::string& workload_hash) {
  std::vector<std::string> findings;
  const auto check = [&](const std::string& name) {
    try {
      tensors(path / name, workload_hash);
    } catch (const BadInput& error) {
      findings.push_back(error.what());
    }
  };
  const std::string origin = (path / "export.json").string();
  const nlohmann::ordered_json about = parse_object(read_file(path / "export.json"), origin);
  const std::int64_t steps = Fields(about, origin, findings).integer("steps", 1);
  throw_findings(findings);
  check("initial.safetensors");
  for (std::int64_t step = 1; step <= steps; ++step) check(fmt::format("step-{:04}.safetensors", step));
  if (fs::exists(path / "yardstick.safetensors")) check("yardstick.safetensors");
  throw_findings(findings);
  return "an export of " + counted(steps, "step");
}

std::string folder(const fs::path& path, const std::string& workload_hash) {
  if (fs::exists(path / "export.json")) return export_folder(path, workload_hash);
  const std::size_t records = check_records(path / "records.jsonl");
  if (!fs::exists(path / "summary.json"))
    throw BadInput(fmt::format("{}: summary.json is missing: the run did not end", path.string()));
  check_summary(path / "summary.json", records);
  return "a run of " + counted(records, "record");
}

std::string workload_or_suite(const fs::path& path) {
  const std::string text = read_file(path);
  if (parse_object(text, path.string()).contains("cases"))
    return "a suite of entries: " + std::to_string(parse_suite(text, path.string()).entries.size());
  const workload::Workload w = workload::parse(text, path.string());
  const workload::Corpus corpus(w);
  std::int64_t elements = 0;
  for (const workload::Parameter& p : workload::parameters(w)) elements += p.elements();
  return fmt::format("workload \"{}\" of {}, {} parameters", w.name, counted(w.layers, "layer"), elements);
}

}  // namespace

std::string validate(const fs::path& path, const std::string& workload_hash) {
  std::error_code error;
  if (fs::is_directory(path, error)) return folder(path, workload_hash);
  if (path.extension() == ".jsonl") return counted(check_records(path), "record");
  if (path.extension() == ".safetensors") return tensors(path, workload_hash);
  if (path.extension() == ".json") return workload_or_suite(path);
  if (!fs::exists(path, error)) throw BadInput(fmt::format("{}: there is no such file", path.string()));
  throw BadInput(
      fmt::format("{}: its kind is not known: a folder, .json, .jsonl or .safetensors is expected", path.string()));
}

}  // namespace shardproof::harness
