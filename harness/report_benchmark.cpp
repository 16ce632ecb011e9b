// SPDX-License-Identifier: Apache-2.0
#include "harness/report_benchmark.hpp"

#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

namespace shardproof::harness {
namespace {

using nlohmann::ordered_json;

constexpr const char* time_figure = "step_seconds_median";

bool is_error(const Record& record) {
  return record.verdict != Verdict::pass && record.verdict != Verdict::skipped &&
         record.verdict != Verdict::unsupported;
}

bool is_listed(const Record& record) { return is_error(record) || std::isfinite(figure_of(record, time_figure)); }

ordered_json context(const ReportData& data) {
  ordered_json context = {{"executable", "shardproof"}, {"shardproof_cpu_time", "not measured"}};
  if (data.environments().empty()) return context;
  const Environment& e = data.environments().front();
  context["host_name"] = e.host;
  context["num_cpus"] = e.cores;
  // Google Benchmark's two words: whether assertions are compiled in.
  context["library_build_type"] = e.flags.find("-DNDEBUG") == e.flags.npos ? "debug" : "release";
  context["shardproof_version"] = e.version;
  context["shardproof_commit"] = e.commit + (e.dirty ? ", changed" : "");
  context["shardproof_processor"] = e.processor;
  context["shardproof_environments"] = data.environments().size();
  return context;
}

ordered_json benchmark(const Record& record, std::size_t repetitions, std::size_t index) {
  const bool error = is_error(record);
  ordered_json object = {{"name", shown_name(record)}, {"run_name", shown_name(record)}, {"run_type", "iteration"},
                         {"repetitions", repetitions}, {"repetition_index", index},      {"threads", record.ranks}};
  if (error) object["error_occurred"] = true, object["error_message"] = record.reason;
  object["iterations"] = error ? 0 : 1;
  object["real_time"] = error ? 0.0 : 1e9 * figure_of(record, time_figure);
  object["cpu_time"] = 0.0;
  object["time_unit"] = "ns";
  if (error) return object;
  std::string label = record.device;
  if (record.fabric) label += "; replay" + over_text(record.fabric);
  object["label"] = record.verdict == Verdict::pass ? label : label + ", " + record.reason;
  for (const auto& [name, value] : record.figures)
    if (std::isfinite(value) && name != time_figure && !object.contains(name)) object[name] = value;
  return object;
}

}  // namespace

std::string benchmark_json(const ReportData& data) {
  std::map<std::string, std::size_t> repetitions, seen;
  for (const ReportedCase& c : data.cases())
    if (is_listed(c.record)) ++repetitions[shown_name(c.record)];
  ordered_json benchmarks = ordered_json::array();
  for (const ReportedCase& c : data.cases()) {
    const std::string name = shown_name(c.record);
    if (is_listed(c.record)) benchmarks.push_back(benchmark(c.record, repetitions[name], seen[name]++));
  }
  const ordered_json whole = {{"context", context(data)}, {"benchmarks", std::move(benchmarks)}};
  return whole.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace shardproof::harness
