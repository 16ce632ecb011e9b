// SPDX-License-Identifier: Apache-2.0
// The files of suites/shapes, compiled in.
#pragma once

#include <span>
#include <string_view>

namespace shardproof::workload {

struct BuiltInFile {
  std::string_view name, text;
};
/// In the order of their names.
std::span<const BuiltInFile> built_in_files();

}  // namespace shardproof::workload
