// SPDX-License-Identifier: Apache-2.0
// Choosing cases of a suite, running them, and what their verdicts amount to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/check_case.hpp"
#include "harness/exit_code.hpp"
#include "harness/suite.hpp"
#include "kernels/core/track.hpp"

namespace shardproof::harness {

struct Selection {
  std::vector<std::string> filters = {};  ///< any of them; none: all
  std::optional<Track> track = {};
  std::int64_t shard = 1, shards = 1;  ///< of what is left, every shards-th case from the shard-th on
};

/// Part of a suite that outlives it.
struct Selected {
  const Entry* entry;
  const Case* value;
};
/// In the suite's order. Throws BadInput when nothing is left.
std::vector<Selected> select(const Suite& suite, const Selection& selection);

/// The next case to run; none at the end. Called by one thread at a time.
using CaseSource = std::function<std::optional<Selected>()>;
CaseSource one_by_one(std::span<const Selected> cases);

/// Runs the cases on so many threads, or as many as the process may have. `ended` is called for each as it ends, by one
/// thread at a time. Throws Interrupted, and what `ended` throws, once the cases that are running have ended.
void check_all(const CaseSource& cases, std::int64_t threads, const Environment& environment,
               const std::function<void(const Selected&, const Checked&)>& ended, const CheckOptions& options = {});

/// What has ended so far; the suite outlives it.
class Tally {
 public:
  void add(const Selected& selected, const Checked& checked);

  /// Entries that ran whole, or had more refused than they expect, against what they expect: one sentence each.
  std::vector<std::string> unexpected() const;
  /// Workloads of which two exact cases that passed have different digests: one sentence each. Layouts may not change
  /// a bit, so this is a fault of the judge too.
  std::vector<std::string> split() const;
  /// Of all cases; refusals that are expected ask for a pass.
  ExitCode code() const;
  /// Verdicts by track, elements compared, digests of the exact ones, and the greatest error over bound.
  std::string report() const;

 private:
  struct Count {
    const Entry* entry;
    std::int64_t unsupported = 0, all = 0;
  };
  /// An exact case by its workload, program keys included.
  struct Seen {
    std::string case_text, digest;
  };
  std::vector<Count> counts_;
  std::map<std::string, std::vector<Seen>> digests_;  // of a workload's hash, one case of each
  std::vector<std::pair<Track, Verdict>> verdicts_;
  std::vector<ExitCode> codes_;
  std::int64_t compared_ = 0;
  double worst_ = 0;
  std::string worst_case_;
};

}  // namespace shardproof::harness
