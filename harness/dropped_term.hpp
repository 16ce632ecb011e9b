// SPDX-License-Identifier: Apache-2.0
// The smallest error that a bound must not hide: one term left out of one contraction.
#pragma once

#include <memory>
#include <string>

#include "impl/engine/tamper.hpp"

namespace shardproof::harness {

/// Plants it in the gradient of a linear map's weight at step 1, the first one in which any rank has a term that is not
/// zero: of the sum over a microbatch's rows that takes in the greatest dy and the greatest x, the term of median
/// magnitude. For a training in f64.
class DroppedTerm {
 public:
  DroppedTerm();
  engine::Tamper tamper(engine::Tamper others) const;
  /// After the training: "a term of 1e-3 out of the gradient of head.weight"; "" where there was none to leave out.
  std::string what() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shardproof::harness
