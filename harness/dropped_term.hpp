// SPDX-License-Identifier: Apache-2.0
// The smallest error that a bound must not hide: one term left out of one contraction.
#pragma once

#include <memory>
#include <string>

#include "impl/engine/tamper.hpp"
#include "kernels/core/device.hpp"

namespace shardproof::harness {

/// Plants it in the gradient of the named linear map's weight, on one rank, at the first microbatch that has a term
/// which is not zero: of the element that takes in the greatest dy and the greatest x, the term of median magnitude.
/// For a training in f64.
class DroppedTerm {
 public:
  DroppedTerm(std::string weight, Rank rank);
  engine::Tamper tamper(engine::Tamper others) const;
  /// After the training: "a term of 0.001 left out of the gradient of blocks.0.attention.value.weight"; "" where there
  /// was none to leave out.
  std::string what() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shardproof::harness
