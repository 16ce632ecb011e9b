// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "impl/plan/strategy.hpp"

namespace shardproof::plan {

/// Sets dp to what pp and tp leave of the ranks. Throws NotSupported where they leave a rest.
void take_rest(Strategy& strategy, std::int64_t ranks);

}  // namespace shardproof::plan
