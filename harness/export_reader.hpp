// SPDX-License-Identifier: Apache-2.0
// Reads what an export (harness/export.hpp) wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/export_file.hpp"
#include "kernels/core/safetensors.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

/// What export.json says.
struct ExportAbout {
  Track track = Track::exact;
  std::int64_t steps = 0;
  std::string workload_hash;
  workload::Workload workload;
};

/// Throws BadInput with every finding, one a line, naming the file.
ExportAbout read_export_about(const std::filesystem::path& folder);

/// "step-0001.safetensors"
std::string export_step_name(std::int64_t step);

/// A file that must be this one of an export; throws BadInput with every finding (harness/export_file.hpp).
safetensors::File read_export_file(const std::filesystem::path& path, const ExportOf& of);

}  // namespace shardproof::harness
