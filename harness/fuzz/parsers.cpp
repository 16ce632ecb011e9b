// SPDX-License-Identifier: Apache-2.0
#include "harness/fuzz/parsers.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "harness/candidate_map.hpp"
#include "harness/case.hpp"
#include "harness/fabric.hpp"
#include "harness/record.hpp"
#include "harness/suite.hpp"
#include "impl/comm/inject.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/layout.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/safetensors.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness::fuzz {
namespace {

/// The text as a file of this process, which is gone at the end.
class TemporaryFile {
 public:
  TemporaryFile(std::string_view text, const char* end)
      : path_(std::filesystem::temp_directory_path() / ("shardproof_fuzz." + std::to_string(getpid()) + end)) {
    write_file(path_, text);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void as_workload(std::string_view text) { workload::load(TemporaryFile(text, ".json").path()); }
void as_safetensors(std::string_view text) { safetensors::read(TemporaryFile(text, ".safetensors").path()); }
std::string safetensors_seed() {
  const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  std::string length(8, '\0');  // little-endian
  length[0] = static_cast<char>(header.size());
  return length + header + "xy";
}
void as_schedule(std::string_view text) {
  const plan::Schedule schedule = plan::parse_schedule(text);
  plan::prove(schedule, plan::extent_of(schedule));
}
void as_map(std::string_view text) {
  static const auto parameters = workload::parameters(workload::load("tiny"));
  parse_candidate_map(text, "map", parameters);
}

}  // namespace

std::array<Parser, 10> parsers() {
  return {{
      {"suite", [](std::string_view text) { parse_suite(text, "suite"); },
       R"({"why": "w", "cases": [{"name": "n", "why": "w", "workload": "tiny", "set": {"layers": 2}, "ranks": [1, 2],
           "factors": {"clip": [0, 1]}, "strategies": ["dp*"], "tracks": ["exact"], "expect": {"pass": 4}}]})"},
      {"record", [](std::string_view text) { parse_record(text, "record"); },
       R"({"schema": "shardproof.record/1", "case": "tiny | dp1 | 1 rank | exact | cpu | threads", "workload": "tiny",
           "ranks": 1, "track": "exact", "ledgers": {"a": 1}, "figures": {"b": null}, "verdict": "fail"})"},
      {"schedule", as_schedule, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"},
      {"layout", [](std::string_view text) { plan::parse_layout(text); }, "# tiny\nheads 0:6\nvocab 0:13\n"},
      {"strategy", [](std::string_view text) { plan::parse_strategy(text, 8); },
       "dp* pp2 tp2 order=tp,pp,dp schedule=gpipe microbatches=4 layers=3,2 optimizer=adam clip=0.5"},
      {"case", [](std::string_view text) { parse_case(text); },
       "tiny dropout=0.1 \"corpus=a b\" | dp2 microbatches=3 | 2 ranks | exact | cpu | threads"},
      {"workload", as_workload, R"({"why": "w", "layers": 2, "hidden": 12, "heads": 3, "frozen": ["*.bias"]})"},
      {"safetensors", as_safetensors, safetensors_seed()},
      {"map", as_map,
       R"({"tensors": {"head.weight": {"from": "lm_head.weight", "transpose": true}}, "ignore": ["x*"]})"},
      {"fabric", [](std::string_view text) { parse_fabric(text, "fabric"); },
       R"({"name": "n", "latency_seconds": 5e-6, "bytes_per_second": 1e9})"},
  }};
}

void feed(std::size_t which, std::string_view text) {
  static const auto all = parsers();
  try {
    all[which % all.size()].parse(text);
  } catch (const BadInput&) {
  } catch (const NotSupported&) {
  }
}

}  // namespace shardproof::harness::fuzz
