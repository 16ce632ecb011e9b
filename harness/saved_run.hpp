// SPDX-License-Identifier: Apache-2.0
// Reading back what a run wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/record.hpp"

namespace shardproof::harness {

/// The records of a .jsonl file. Throws BadInput with every finding, one a line, each starting with path and line: a
/// record cut short, of another schema, illegal; no record at all unless that is allowed.
std::vector<Record> read_records(const std::filesystem::path& path, bool may_be_empty);
/// Without a last one that was cut off; there may be none.
std::vector<Record> read_whole_records(const std::filesystem::path& path);

struct SavedRun {
  std::vector<Record> records = {};
  std::string command = {};                    ///< the command line; "" where the run did not end
  std::optional<std::int64_t> exit_code = {};  ///< none where the run did not end
};

/// records.jsonl of the folder, and summary.json if it is there. Throws BadInput with every finding, one a line, also
/// where the summary does not fit the records.
SavedRun read_run(const std::filesystem::path& folder);

}  // namespace shardproof::harness
