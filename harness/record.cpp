// SPDX-License-Identifier: Apache-2.0
#include "harness/record.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/case.hpp"
#include "harness/json_fields.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

using nlohmann::ordered_json;

ordered_json object_of(const Counts& counts) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : counts) object[name] = value;
  return object;
}

ordered_json object_of(const Figures& figures) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : figures)
    object[name] = std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
  return object;
}

Counts counts_of(Fields& fields, const std::string& key, const std::string& origin,
                 std::vector<std::string>& findings) {
  const ordered_json& members = fields.object(key);
  Fields inner(members, origin + ": " + key, findings);
  Counts counts;
  for (const auto& [name, value] : members.items()) counts.emplace_back(name, inner.integer(name, 0));
  return counts;
}

Figures figures_of(Fields& fields) {
  Figures figures;
  for (const auto& [name, value] : fields.object("figures").items()) {
    if (!value.is_number() && !value.is_null())
      fields.report(fmt::format("figures: \"{}\" must be a number or null", name));
    figures.emplace_back(name, value.is_number() ? value.get<double>() : std::nan(""));
  }
  return figures;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string shown_name(const Record& record) {
  std::string name = record.case_text;
  if (record.delays != 0) name += fmt::format(" | delays {}", record.delays);
  for (const std::string& injection : record.injections) name += " | " + injection;
  return name;
}

double figure_of(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record.figures, name, &Figures::value_type::first);
  return found == record.figures.end() ? std::nan("") : found->second;
}

std::vector<std::string> disagreements(const Record& record) {
  std::vector<std::string> lines;
  for (const auto& [name, form] : record.forms) {
    const auto ledger = std::ranges::find(record.ledgers, name, &Counts::value_type::first);
    if (ledger == record.ledgers.end())
      lines.push_back(fmt::format("{} has a form ({}) but no ledger", name, form));
    else if (ledger->second != form)
      lines.push_back(fmt::format("{} is {}, its form says {}", name, ledger->second, form));
  }
  if (record.forms.empty()) return lines;
  for (const auto& [name, ledger] : record.ledgers) {  // traffic that no form knows of is a finding too
    const bool depends_on_values = name.find("_second_lane_") != name.npos;
    if (!name.starts_with("traffic_") || depends_on_values) continue;
    if (std::ranges::find(record.forms, name, &Counts::value_type::first) == record.forms.end())
      lines.push_back(fmt::format("{} is {}, and there is no form for it", name, ledger));
  }
  return lines;
}

void hold_to_forms(Record& record) {
  if (record.verdict != Verdict::pass) return;
  const auto wrong = disagreements(record);
  if (wrong.empty()) return;
  record.verdict = Verdict::fail;
  record.reason = "a ledger differs from its form: " + workload::joined(wrong, "; ");
}

std::string to_json(const Record& record) {
  ordered_json object = {
      {"schema", record_schema},
      {"case", record.case_text},
      {"workload", record.workload},
      {"workload_hash", record.workload_hash},
      {"strategy", record.strategy},
      {"ranks", record.ranks},
      {"track", name_of(record.track)},
      {"device", record.device},
      {"transport", record.transport},
      {"contract", record.contract},
      {"delays", record.delays},
      {"injections", record.injections},
      {"verdict", name_of(record.verdict)},
      {"reason", record.reason},
      {"judged", record.judged},
      {"digest", record.digest.empty() ? ordered_json(nullptr) : ordered_json(record.digest)},
      {"digest_steps", record.digest_steps},
      {"compared", record.compared},
      {"ledgers", object_of(record.ledgers)},
      {"forms", object_of(record.forms)},
      {"figures", object_of(record.figures)},
      {"rerun", record.rerun},
      {"environment", ordered_json::parse(to_json(record.environment))},
  };
  if (record.fabric)
    object["fabric"] = {{"name", record.fabric->name},
                        {"latency_seconds", record.fabric->latency_seconds},
                        {"bytes_per_second", record.fabric->bytes_per_second}};
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Record parse_record(std::string_view json_text, std::string_view origin) {
  const ordered_json object = parse_object(json_text, origin);
  std::vector<std::string> findings;
  const std::string place(origin);
  Fields fields(object, place, findings);
  Record record;
  if (const std::string schema = fields.text("schema"); !schema.empty() && schema != record_schema)
    fields.report(fmt::format("\"schema\" is \"{}\": this program reads \"{}\"", schema, record_schema));
  record.case_text = fields.text("case");
  record.workload = fields.text("workload");
  record.workload_hash = fields.text("workload_hash");
  record.strategy = fields.text("strategy");
  record.ranks = fields.integer("ranks", 1);
  record.track = track_named(fields.choice("track", track_names()));
  record.device = fields.text("device");
  record.transport = fields.text("transport");
  record.contract = fields.text("contract");
  record.delays = fields.integer("delays", 0);
  record.injections = fields.list("injections");
  record.verdict = verdict_named(fields.choice("verdict", verdict_names()));
  record.reason = fields.text("reason");
  record.judged = fields.text("judged");
  record.digest = fields.text_or_null("digest");
  record.digest_steps = fields.integer("digest_steps", 0);
  record.compared = fields.integer("compared", 0);
  record.ledgers = counts_of(fields, "ledgers", place, findings);
  record.forms = counts_of(fields, "forms", place, findings);
  record.figures = figures_of(fields);
  record.rerun = fields.text("rerun");
  try {
    record.environment = parse_environment(fields.object("environment").dump(), "environment");
  } catch (const BadInput& error) {
    fields.report(error.what());
  }
  if (fields.has("fabric")) {
    Fields inner(fields.object("fabric"), place + ": fabric", findings);
    record.fabric = take_fabric(inner);
  }
  fields.finish();

  throw_findings(findings);

  for (const auto& [name, hash] :
       {std::pair("digest", record.digest), std::pair("workload_hash", record.workload_hash)})
    if (!hash.empty() && !is_sha256(hash)) fields.report(fmt::format("\"{}\" is not 64 hexadecimal digits", name));
  if (record.digest.empty() != (record.digest_steps == 0))
    fields.report("\"digest_steps\" must be 0 where there is no digest, and only there");
  try {
    const Case value = parse_case(record.case_text);
    if (value.track != record.track || value.ranks != record.ranks)
      fields.report("\"track\" and \"ranks\" must be those of \"case\"");
  } catch (const BadInput& error) {
    fields.report(error.what());
  }
  if (record.rerun.empty()) fields.report("\"rerun\" is empty");
  const bool passed = record.verdict == Verdict::pass;
  if (passed && record.judged.empty()) fields.report("a pass does not say what was judged");
  if (passed)
    for (const std::string& line : disagreements(record)) fields.report("a pass whose " + line);
  if (passed && record.compared == 0) fields.report("a pass that compared nothing is none");
  if (passed != record.reason.empty()) fields.report("\"reason\" must be empty for a pass, and only then");
  throw_findings(findings);
  return record;
}

}  // namespace shardproof::harness
