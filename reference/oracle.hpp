// SPDX-License-Identifier: Apache-2.0
// The oracle: sequential training of one workload, loop for loop from ARITHMETIC.md, in double, Fixed or float.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/observable.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::reference {

/// One training run. Steps count from 1.
class Oracle {
 public:
  virtual ~Oracle() = default;

  /// Trains on the batch (whose step number it takes) and returns the step's observables: loss, gradients, norm, clip,
  /// skipped, parameters and state after the update (ARITHMETIC.md, section 12), names in the order of the digest.
  virtual std::vector<Observable> step(const workload::Batch& batch) = 0;

  /// The update alone, as step() would make it from these: parameters, state and steps taken so far are the oracle's;
  /// raw gradients (in the order of workload::parameters, frozen ones left out) and clip factor are the caller's.
  /// Returns parameters and state after it. For judging an optimizer apart from the gradients it was given.
  virtual std::vector<Observable> update(std::int64_t step, const std::vector<Values>& gradients,
                                         double clip_factor) = 0;

  /// Replaces a parameter's or a state's values (its name as in observables). Throws InternalError for an unknown name
  /// or another size.
  virtual void set(Observed kind, std::string_view name, const Values& values) = 0;
};

/// A run from the workload's initial parameters. The native track's oracle computes in float: it is the yardstick for
/// f32. Throws BadInput for an illegal workload.
std::unique_ptr<Oracle> make_oracle(const workload::Workload& workload, Track track);

}  // namespace shardproof::reference
