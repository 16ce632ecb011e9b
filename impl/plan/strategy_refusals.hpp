// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "impl/plan/strategy.hpp"

namespace shardproof::plan {

struct KeyRow;

/// Sets the axis, which is 1, to what the others leave of the ranks. Throws NotSupported where they leave a rest.
void take_rest(Strategy& strategy, const KeyRow& axis, std::int64_t ranks);

}  // namespace shardproof::plan
