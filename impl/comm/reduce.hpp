// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "impl/comm/communicator.hpp"

namespace shardproof::comm {

/// out[i] = inputs[0][i] op inputs[1][i] op ..., in this order. `out` may be one of the inputs (one or more of them, up
/// to 1024). Sums of integers are modulo 2^bits; of Fixed, elements whose true total is out of range end out of range.
void reduce(Dtype dtype, Operator op, std::span<const std::byte* const> inputs, std::byte* out, std::int64_t elements);

}  // namespace shardproof::comm
