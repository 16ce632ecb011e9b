// SPDX-License-Identifier: Apache-2.0
#include "harness/export_reader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {

ExportAbout read_export_about(const std::filesystem::path& folder) {
  const std::string origin = (folder / "export.json").string();
  const nlohmann::ordered_json about = parse_object(read_file(folder / "export.json"), origin);
  std::vector<std::string> findings;
  Fields fields(about, origin, findings);
  if (const std::string schema = fields.text("schema"); !schema.empty() && schema != export_schema)
    fields.report(fmt::format("\"schema\" is \"{}\": this program reads \"{}\"", schema, export_schema));
  ExportAbout result;
  result.track = track_named(fields.choice("track", track_names()));
  result.workload_hash = fields.text("workload_hash");
  result.steps = fields.integer("steps", 1);
  fields.text("strategy");
  fields.text("digest");
  fields.number("loss_scale");
  const std::string text = fields.object("workload").dump();
  fields.finish();
  throw_findings(findings);
  result.workload = workload::parse(text, origin + ": workload");
  return result;
}

std::string export_step_name(std::int64_t step) { return fmt::format("step-{:04}.safetensors", step); }

safetensors::File read_export_file(const std::filesystem::path& path, const ExportOf& of) {
  safetensors::File file = safetensors::read(path);
  std::vector<std::string> findings;
  for (const std::string& finding : export_findings(file, of))
    findings.push_back(fmt::format("{}: {}", path.string(), finding));
  throw_findings(findings);
  return file;
}

}  // namespace shardproof::harness
