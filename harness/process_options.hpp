// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/options.hpp"

namespace shardproof::harness {

/// --ranks-per-process and --no-shared-memory.
class ProcessOptions {
 public:
  /// Declares it; this object must outlive options.parse().
  void declare(Options& options);
  /// After parsing: for the rest of this run. Throws BadInput without processes.
  void apply() const;

 private:
  std::optional<std::int64_t> ranks_;
  bool no_shared_memory_ = false;
};

/// The words that ask for what holds.
std::vector<std::string> words_of_processes();

}  // namespace shardproof::harness
