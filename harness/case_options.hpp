// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/case.hpp"
#include "harness/job_options.hpp"
#include "harness/options.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// One of the cases that `run` measures.
struct RunCase {
  Case value;
  std::optional<TrainingJob> job = {};  ///< none where the strategy table refuses it
  std::string refusal = {};             ///< why

  /// What names it alone on a command line, after `run`.
  std::vector<std::string> words() const;
};

/// The options that say what `run` trains: one case, or several, each strategy on each number of devices.
class CaseOptions {
 public:
  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);

  /// After parsing; at least one. A case that comes up twice (dp1 of dp* and tp*) is there once, then all of them
  /// --repeat times. `planned_only`: with more ranks than threads carry too. Throws BadInput with every finding.
  std::vector<RunCase> cases(bool planned_only) const;

 private:
  std::vector<Case> of_suite() const;
  std::vector<Case> of_strategies(bool planned_only) const;
  std::vector<std::int64_t> devices() const;

  WorkloadOptions named_;
  std::string suite_, devices_;
  std::vector<std::string> strategies_, filters_;
  std::optional<std::int64_t> repeat_;
  std::int64_t shard_ = 1, shards_ = 1;
};

}  // namespace shardproof::harness
