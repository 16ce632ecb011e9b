// SPDX-License-Identifier: Apache-2.0
#include "harness/validate.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/export_reader.hpp"
#include "harness/json_fields.hpp"
#include "harness/options.hpp"
#include "harness/saved_run.hpp"
#include "harness/suite.hpp"
#include "harness/text.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/safetensors.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;

/// Runs f and adds what it refuses.
template <class F>
void collect(std::vector<std::string>& findings, const F& f) {
  try {
    f();
  } catch (const BadInput& error) {
    findings.push_back(error.what());
  } catch (const NotSupported& error) {
    findings.push_back(error.what());
  }
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string tensors(const fs::path& path, const ExportOf& of, bool of_export) {
  safetensors::File file = of_export ? read_export_file(path, of) : safetensors::read(path);
  if (!of_export && is_export(file)) file = read_export_file(path, of);
  if (file.entries.empty()) throw BadInput(path.string() + ": it holds no tensor");
  std::int64_t bytes = 0;
  for (const safetensors::Entry& entry : file.entries) bytes += static_cast<std::int64_t>(entry.bytes.size());
  return counted(file.entries.size(), "tensor") + ", " + print_bytes(bytes);
}

std::string export_folder(const fs::path& path, const std::string& workload_hash) {
  const ExportAbout about = read_export_about(path);
  ExportOf of{.workload_hash = workload_hash.empty() ? about.workload_hash : workload_hash,
              .track = std::string(name_of(about.track))};
  std::vector<std::string> findings;
  const auto check = [&](const std::string& name, ExportPart part, std::optional<std::int64_t> step = {}) {
    of.part = part;
    of.step = step;
    collect(findings, [&] { read_export_file(path / name, of); });
  };
  check("initial.safetensors", ExportPart::initial);
  for (std::int64_t step = 1; step <= about.steps; ++step) {
    const std::string name = export_step_name(step);
    check(name, ExportPart::step, step);
    if (!is_there(path / name)) break;  // the number may be anything
  }
  if (is_there(path / "yardstick.safetensors")) check("yardstick.safetensors", ExportPart::yardstick);
  throw_findings(findings);
  return "an export of " + counted(about.steps, "step");
}

std::string folder(const fs::path& path, const std::string& workload_hash) {
  if (is_there(path / "export.json")) return export_folder(path, workload_hash);
  const SavedRun run = read_run(path);
  if (!run.exit_code) throw BadInput(fmt::format("{}: summary.json is missing: the run did not end", path.string()));
  if (!is_there(path / "junit.xml")) throw BadInput(fmt::format("{}: junit.xml is missing", path.string()));
  return "a run of " + counted(run.records.size(), "record") +
         (*run.exit_code == 0 ? "" : fmt::format(", exit code {}", *run.exit_code));
}

std::string suite(const fs::path& path) {
  const Suite suite = read_suite(path);
  std::vector<std::string> findings;
  std::int64_t cases = 0;
  for (const Entry& entry : suite.entries) {
    for (const Case& value : entry.cases) {
      const std::size_t before = findings.size();
      collect(findings, [&] { workload::load(value.workload, value.settings); });
      // A refusal by the strategy table is a verdict; what the table cannot read is none.
      try {
        plan::parse_strategy(value.strategy);
      } catch (const NotSupported&) {
      } catch (const BadInput& error) {
        findings.push_back(error.what());
      }
      for (std::size_t k = before; k < findings.size(); ++k)
        findings[k] = fmt::format("{}: {}: {}: {}", path.string(), entry.name, print(value), findings[k]);
      ++cases;
    }
  }
  throw_findings(findings);
  return fmt::format("a suite of {} entries, {}", suite.entries.size(), counted(cases, "case"));
}

std::string workload_or_suite(const fs::path& path) {
  const std::string text = read_file(path, 1 << 24);
  const auto object = parse_object(text, path.string());
  if (object.contains("cases")) return suite(path);
  const auto keys = workload::keys();
  std::size_t known = 0;
  for (const auto& [key, value] : object.items()) known += std::ranges::count(keys, key, &workload::KeyInfo::name);
  if (2 * known < object.size())
    throw BadInput(fmt::format("{}: neither a workload (list --keys) nor a suite (no \"cases\")", path.string()));
  const workload::Workload w = workload::load(path.string());
  const workload::Corpus corpus(w);
  std::int64_t elements = 0;
  for (const workload::Parameter& p : workload::parameters(w)) elements += p.elements();
  return fmt::format("workload \"{}\" of {}, {} parameters", w.name, counted(w.layers, "layer"), elements);
}

}  // namespace

std::string validate(const fs::path& path, const std::string& workload_hash) {
  std::error_code error;
  if (fs::is_directory(path, error)) return folder(path, workload_hash);
  if (path.extension() == ".jsonl") return counted(read_records(path, false).size(), "record");
  if (path.extension() == ".safetensors")
    return tensors(path, {.workload_hash = workload_hash}, !workload_hash.empty());
  if (path.extension() == ".json") return workload_or_suite(path);
  if (!is_there(path)) throw BadInput(fmt::format("{}: there is no such file", path.string()));
  throw BadInput(
      fmt::format("{}: its kind is not known: a folder, .json, .jsonl or .safetensors is expected", path.string()));
}

}  // namespace shardproof::harness
