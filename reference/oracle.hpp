// SPDX-License-Identifier: Apache-2.0
// The oracle: sequential training of one workload, loop for loop from ARITHMETIC.md, in double, Fixed or float.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/observable.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::reference {

/// What a step reads in place of a parameter's values: for measures of rounding.
using Replace = std::function<Values(const std::string& parameter, const Values& values)>;

/// One training run. Steps count from 1.
class Oracle {
 public:
  virtual ~Oracle() = default;

  /// Trains on the batch (whose step number it takes) and returns the step's observables: loss, gradients, norm, clip,
  /// skipped, parameters and state after the update (ARITHMETIC.md, section 12), names in the order of the digest. A
  /// step may be made anew, with other values (set); of a stale program, before the next one.
  virtual std::vector<Observable> step(const workload::Batch& batch, const Replace& replace = {}) = 0;

  /// The update alone, as step() would make it from these: parameters, state and updates so far are the oracle's; raw
  /// gradients and clip factor are the caller's. What has no gradient stays as it is. Returns the step's parameters and
  /// state after it. For judging an optimizer apart from the gradients it was given. Throws InternalError for the name
  /// of no trainable parameter.
  virtual std::vector<Observable> update(std::int64_t step, const std::map<std::string, Values>& gradients,
                                         double clip_factor) = 0;

  /// Replaces a parameter's or a state's values (its name as in observables). Throws InternalError for an unknown name
  /// or another size.
  virtual void set(Observed kind, std::string_view name, const Values& values) = 0;
};

/// A run from the workload's initial parameters. The native track's oracle computes in float: it is the yardstick for
/// f32. Throws BadInput for an illegal workload.
std::unique_ptr<Oracle> make_oracle(const workload::Workload& workload, Track track);

}  // namespace shardproof::reference
