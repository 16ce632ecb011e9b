// SPDX-License-Identifier: Apache-2.0
// What the files of an export (harness/export.hpp) must hold, checked without running anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/safetensors.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

inline constexpr std::string_view export_schema = "shardproof.export/1";

/// One mask of a step with dropout.
struct MaskSite {
  std::string name;  ///< of the tensor
  workload::DropoutSite site;
  std::int64_t layer;
  Dims dims;
};
/// None where dropout is off.
std::vector<MaskSite> mask_sites(const workload::Workload& workload, std::int64_t samples);

/// True for a file that says of itself that it belongs to an export.
bool is_export(const safetensors::File& file);

enum class ExportPart : std::uint8_t { initial, step, yardstick };

/// What a file of an export must belong to; what is not given may be anything.
struct ExportOf {
  std::string workload_hash = {}, track = {};
  std::optional<ExportPart> part = {};
  std::optional<std::int64_t> step = {};
};

/// Every finding about a file of an export: metadata that are missing, wrong or contradict each other, tensors that its
/// workload and step do not have, lack, or have in another type or shape, tokens and labels beyond the vocabulary. The
/// workload's hash is computed again where its corpus is no file.
std::vector<std::string> export_findings(const safetensors::File& file, const ExportOf& of = {});

}  // namespace shardproof::harness
