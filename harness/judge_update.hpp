// SPDX-License-Identifier: Apache-2.0
// How far two evaluations of one optimizer update (reference/ARITHMETIC.md, section 9) may lie apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "suites/workload/workload.hpp"

namespace shardproof::harness {

/// What one update of one parameter was made from, as doubles. first: momentum, or Adam's first moment.
struct UpdateInput {
  std::span<const double> parameter, gradient, first, second;
  double clip_factor = 1;
  double learning_rate = 0;
  std::int64_t taken = 1;  ///< t of the bias corrections: this update included
  /// Relative errors beside the roundings: of the gradient times the clip factor, and of the bias corrections.
  double gradient_error = 0, correction_error = 0;
};

/// Per element; empty for state that the optimizer does not have.
struct UpdateBounds {
  std::vector<double> parameter, first, second;
};

/// Bounds on |a - b| when a and b come from the same input, each rounding (constants included) with relative error at
/// most u1 and u2, u = u1 + u2; `tiny` is the smallest positive number of the coarser type. The counts of roundings are
/// derived in the source.
UpdateBounds update_bounds(const workload::Workload& workload, const workload::Parameter& parameter,
                           const UpdateInput& input, double u, double tiny);

}  // namespace shardproof::harness
