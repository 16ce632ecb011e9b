// SPDX-License-Identifier: Apache-2.0
// One tensor of a candidate against the oracle's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/core/observable.hpp"

namespace shardproof::harness {

struct Comparison {
  std::int64_t outside = 0;  ///< elements farther from the oracle's than their bounds
  std::int64_t index = 0;    ///< the element with the greatest error over bound, the first of equals
  double candidate = 0, oracle = 0, error = 0, bound = 0;
  /// Greatest error over bound; infinite for a NaN, or an error where the bound is 0.
  double worst = 0;
};

/// Every bit, -0 as +0. Both hold the same type and count (InternalError).
Comparison compare_bits(const Values& candidate, const Values& oracle);

/// Element i within bounds[i], or within bounds[0] for all when there is only one.
Comparison compare_bounded(std::span<const double> candidate, std::span<const double> oracle,
                           std::span<const double> bounds);

double greatest_magnitude(std::span<const double> values);
/// max |a - b|; NaN if any difference is.
double greatest_difference(std::span<const double> a, std::span<const double> b);

/// c other than 1, where candidate = c x oracle to within `slack` at every element, for tensors in which at least two
/// elements can tell; c is taken where the oracle is greatest.
std::optional<double> constant_ratio(std::span<const double> candidate, std::span<const double> oracle, double slack);

/// The median of such constants, and how many of them it is (to 1e-4 of itself); none of none.
struct CommonRatio {
  double ratio = 1;
  std::int64_t tensors = 0;
};
std::optional<CommonRatio> common_ratio(std::vector<double> ratios);

}  // namespace shardproof::harness
