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

/// Sums of Fixed that go on elsewhere, for those of three ranks or more may pass 2^63 and come back into the range:
/// low, modulo 2^64, and beside it high, of the elements over 2^8. In [-2^55, 2^55) high shows that the true total is
/// in
/// [-2^63, 2^63 + 2^18), where the sum modulo 2^64 is out of range whenever the total is.
void sum_lanes(std::span<const std::int64_t* const> inputs, std::int64_t* low, std::int64_t* high,
               std::int64_t elements);
/// The totals that lanes stand for; fixed_invalid where they are out of range. `out` may be `low`.
void join_lanes(const std::int64_t* low, const std::int64_t* high, std::int64_t* out, std::int64_t elements);
/// The largest |raw|: while such bounds of all ranks sum to less than 2^63, so do all totals and parts of them.
double largest(const std::int64_t* values, std::int64_t elements);

}  // namespace shardproof::comm
