// SPDX-License-Identifier: Apache-2.0
// What the files of an export (harness/export.hpp) must hold, checked without running anything.
#pragma once

#include <string>
#include <vector>

#include "kernels/core/safetensors.hpp"

namespace shardproof::harness {

/// True for a file that says of itself that it belongs to an export.
bool is_export(const safetensors::File& file);

/// Every finding about a file of an export: metadata that is missing or wrong, tensors of another type than their kind
/// has, parameters, gradients and states that its workload does not have or that have other dims. With
/// `workload_hash`: that it belongs to that workload.
std::vector<std::string> export_findings(const safetensors::File& file, const std::string& workload_hash = "");

}  // namespace shardproof::harness
