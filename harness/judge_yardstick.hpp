// SPDX-License-Identifier: Apache-2.0
// The yardstick: how far from the oracle in double an observable may be, by how far the oracle in float is from it. The
// rule and its reasons stand in judge.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.hpp"
#include "kernels/core/observable.hpp"

namespace shardproof::harness {

/// Draws of float's error: from the parameters as they are (draw 0), then from parameters that are each moved by a unit
/// in the last place at most. One draw is no measure of a tensor of few elements: its error is 0 when the roundings
/// happen to cancel.
inline constexpr std::int64_t most_draws = 16;

/// A tensor in float, each element moved to itself or a neighbour; none in draw 0.
std::vector<float> moved_by_an_ulp(std::span<const double> values, std::string_view name, std::int64_t draw,
                                   std::int64_t step);

struct Precision {
  Dtype dtype;
  std::string_view yardstick;  ///< the precision whose oracle gives its yardstick
  double unit;                 ///< unit roundoff
  double shrink;               ///< from the yardstick to this precision
  double tiny;                 ///< the smallest positive number
};
/// f64, f32, f16, bf16: from the finest unit roundoff to the coarsest.
std::span<const Precision> precisions();
/// Of f64 and the other three; throws InternalError for another type.
const Precision& precision_of(Dtype dtype);

/// What all bounds of one step have in common.
struct Yardstick {
  Precision precision;
  double labels = 0;    ///< terms of the loss
  double elements = 0;  ///< of all trainable parameters: terms of the norm
  double terms = 0;     ///< of the sums behind one element of a gradient, at most
  double model = 0;     ///< the greatest gradient entry of the model

  /// Of an observable whose greatest magnitude is `greatest` and whose draws of float's error are `e` at most. `zero`:
  /// a gradient that is zero but for rounding, in double and in every draw. `used`: not of a parameter that is used
  /// nowhere.
  double bound(Observed kind, std::string_view name, double greatest, double e, bool zero, bool used) const;
};

}  // namespace shardproof::harness
