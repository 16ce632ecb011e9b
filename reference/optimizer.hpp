// SPDX-License-Identifier: Apache-2.0
// SGD, momentum, Adam and AdamW (ARITHMETIC.md, section 9).
#pragma once

#include "reference/parameters.hpp"

namespace shardproof::reference {

struct Update {
  double learning_rate;
  std::int64_t t;  ///< steps taken, with this one
  double scale;    ///< what raw gradients are multiplied by
  double clip_factor;
};

/// One parameter's value and state after an update with raw gradient G.
template <class S>
void optimize(Arithmetic<S>& arithmetic, const workload::Workload& workload, const Update& update,
              const Array<S>& gradient, Parameter<S>& parameter);

}  // namespace shardproof::reference
