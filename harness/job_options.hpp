// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/options.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// The options that say what is trained and how: --workload --track --strategy --steps --seed --set --device-memory.
class JobOptions {
 public:
  explicit JobOptions(Track standard) : track_(standard) {}

  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);

  /// After parsing. Throws BadInput with every finding, and NotSupported.
  TrainingJob job() const;

  /// Of the job: the case's printed form, its strategy, and the words that name it on a command line.
  std::string case_text() const;
  std::string strategy() const;
  std::vector<std::string> words() const;

 private:
  std::vector<std::string> settings() const;

  std::string workload_, strategy_ = "dp1";
  Track track_;
  std::optional<Track> given_track_;
  std::optional<std::int64_t> steps_, seed_, device_memory_;
  std::vector<std::string> settings_;
};

}  // namespace shardproof::harness
