// SPDX-License-Identifier: Apache-2.0
#include "harness/export_file.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {
namespace {

constexpr std::string_view schema = "shardproof.export/1";

struct Kind {
  std::string_view prefix;  // of a tensor's name
  Dtype dtype;
  bool of_parameter;  // what follows is a parameter's name (of a state: and the state's)
};

constexpr std::array kinds = {
    Kind{"raw/", Dtype::i64, true},       Kind{"parameter/", Dtype::f64, true}, Kind{"gradient/", Dtype::f64, true},
    Kind{"state/", Dtype::f64, true},     Kind{"tokens", Dtype::i32, false},    Kind{"labels", Dtype::i32, false},
    Kind{"documents", Dtype::i32, false}, Kind{"label_mask", Dtype::u8, false}, Kind{"dropout_mask/", Dtype::u8, false},
    Kind{"loss", Dtype::f64, false},      Kind{"norm", Dtype::f64, false},      Kind{"clip", Dtype::f64, false},
    Kind{"skipped", Dtype::i64, false},   Kind{"f32/", Dtype::f64, false},
};

class Examiner {
 public:
  Examiner(const safetensors::File& file, const std::string& workload_hash) {
    for (const char* key : {"schema", "track", "loss_scale", "workload_hash", "workload"})
      if (!file.metadata.contains(key)) findings.push_back(fmt::format("the metadata lack \"{}\"", key));
    if (!findings.empty()) return;
    if (const std::string& found = file.metadata.at("schema"); found != schema)
      findings.push_back(fmt::format("its schema is \"{}\": this program reads \"{}\"", found, schema));
    if (const std::string& found = file.metadata.at("workload_hash"); !workload_hash.empty() && found != workload_hash)
      findings.push_back(fmt::format("it belongs to another workload: its hash is {}, not {}", found, workload_hash));
    try {
      parameters_ = workload::parameters(workload::parse(file.metadata.at("workload"), "its workload"));
    } catch (const BadInput& error) {
      findings.push_back(error.what());
    }
    for (const safetensors::Entry& entry : file.entries) examine(entry);
  }

  std::vector<std::string> findings;

 private:
  void examine(const safetensors::Entry& entry) {
    const auto kind = std::ranges::find_if(kinds, [&](const Kind& k) { return entry.name.starts_with(k.prefix); });
    if (kind == kinds.end()) {
      findings.push_back(fmt::format("tensor \"{}\" is of no kind that an export has", entry.name));
      return;
    }
    if (entry.dtype != kind->dtype)
      findings.push_back(
          fmt::format("tensor \"{}\" is of type {}, not {}", entry.name, name_of(entry.dtype), name_of(kind->dtype)));
    if (kind->of_parameter && parameters_) examine_parameter(entry);
  }

  // "parameter/NAME", "raw/gradient/NAME", "state/NAME.STATE"
  void examine_parameter(const safetensors::Entry& entry) {
    const std::string_view text = entry.name;
    const std::string_view kind = text.starts_with("raw/") ? text.substr(4) : text;
    std::string_view name = kind.substr(kind.find('/') + 1);
    if (kind.starts_with("state/")) name = name.substr(0, name.rfind('.'));
    const auto found = std::ranges::find(*parameters_, name, &workload::Parameter::name);
    if (found == parameters_->end())
      findings.push_back(fmt::format("tensor \"{}\": its workload has no parameter \"{}\"", text, name));
    else if (found->dims != entry.dims)
      findings.push_back(fmt::format("tensor \"{}\" has {} dims and {} elements, its workload says {} and {}", text,
                                     entry.dims.size(), elements_of(entry.dims), found->dims.size(),
                                     found->elements()));
  }

  std::optional<std::vector<workload::Parameter>> parameters_;
};

}  // namespace

bool is_export(const safetensors::File& file) {
  const auto found = file.metadata.find("schema");
  return found != file.metadata.end() && found->second.starts_with("shardproof.export/");
}

std::vector<std::string> export_findings(const safetensors::File& file, const std::string& workload_hash) {
  return Examiner(file, workload_hash).findings;
}

}  // namespace shardproof::harness
