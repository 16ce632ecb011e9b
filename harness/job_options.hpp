// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/options.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// --workload --track --steps --seed --set --device-memory.
struct WorkloadOptions {
  std::string workload;
  std::optional<Track> track;
  std::optional<std::int64_t> device_memory;

  /// Declares them; this object must outlive options.parse(). `track_help`: of --track.
  void declare(Options& options, const std::string& track_help);
  /// KEY=VALUE, --steps and --seed among them.
  std::vector<std::string> settings() const;

 private:
  std::optional<std::int64_t> steps_, seed_;
  std::vector<std::string> given_;
};

/// The options that say what is trained and how: those of the workload and one --strategy.
class JobOptions {
 public:
  explicit JobOptions(Track standard) : track_(standard) {}

  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);

  /// After parsing. Throws BadInput with every finding, and NotSupported.
  TrainingJob job() const;

 private:
  WorkloadOptions named_;
  std::string strategy_ = "dp1";
  Track track_;
};

}  // namespace shardproof::harness
