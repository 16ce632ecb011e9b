// SPDX-License-Identifier: Apache-2.0
// Which old weights a step reads (ARITHMETIC.md, section 13).
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "reference/parameters.hpp"

namespace shardproof::reference {

/// The stage, from 0, that holds a parameter. Throws BadInput for one that several stages use.
std::int64_t stage_of(const workload::Workload& workload, std::string_view parameter);

/// So many steps in a row an update of the stage is of.
std::int64_t steps_per_update(const workload::StaleProgram& program, std::int64_t stage);

/// The version of a stage's weights that step t = 1, 2, ... reads: so many updates have made it.
std::int64_t version_read(const workload::StaleProgram& program, std::int64_t stage, std::int64_t step);

/// How many steps in a row, this one the last, the update of a parameter at the end of the step is of: 1 where the
/// program is not stale; 0: the step makes none.
std::int64_t steps_of_update(const workload::Workload& workload, std::string_view parameter, std::int64_t step);

/// The values that steps to come may read, by version.
template <class S>
class History {
 public:
  explicit History(const workload::Workload& workload) : workload_(workload) {}

  /// Before step t: keeps the newest values, and puts those that it reads in their place. What is no longer read by any
  /// step after t is dropped.
  void begin(std::int64_t step, Parameters<S>& parameters);
  /// After its gradients: the newest values again.
  void end(std::int64_t step, Parameters<S>& parameters) const;

 private:
  using Values = std::map<std::string, Array<S>, std::less<>>;
  const workload::Workload& workload_;
  std::map<std::int64_t, Values> versions_;  // by steps before them
};

}  // namespace shardproof::reference
