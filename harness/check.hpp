// SPDX-License-Identifier: Apache-2.0
// Choosing cases of a suite, running them, and what their verdicts amount to.
#pragma once

#include <cstdint>
#include <functional>
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

/// Runs the cases on so many threads. `ended` is called for each as it ends, by one thread at a time. Throws
/// Interrupted, and what `ended` throws, once the cases that are running have ended.
void check_all(std::span<const Selected> cases, std::int64_t threads, const Environment& environment,
               const std::function<void(const Selected&, const Checked&)>& ended);

/// What has ended so far; the suite outlives it.
class Tally {
 public:
  void add(const Selected& selected, const Checked& checked);

  /// Entries that ran whole, or had more refused than they expect, against what they expect: one sentence each.
  std::vector<std::string> unexpected() const;
  /// Of all cases; refusals that are expected ask for a pass.
  ExitCode code() const;
  /// Verdicts by track, elements compared, and the greatest error over bound.
  std::string report() const;

 private:
  struct Count {
    const Entry* entry;
    std::int64_t pass = 0, unsupported = 0, all = 0;
  };
  std::vector<Count> counts_;
  std::vector<std::pair<Track, Verdict>> verdicts_;
  std::vector<ExitCode> codes_;
  std::int64_t compared_ = 0;
  double worst_ = 0;
  std::string worst_case_;
};

}  // namespace shardproof::harness
