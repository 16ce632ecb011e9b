// SPDX-License-Identifier: Apache-2.0
// The files of suites/cases and their manifests, compiled in.
#pragma once

#include <span>
#include <string_view>

namespace shardproof::harness {

struct SuiteFile {
  std::string_view name, text, manifest;
};
/// In the order of their names.
std::span<const SuiteFile> suite_files();

}  // namespace shardproof::harness
