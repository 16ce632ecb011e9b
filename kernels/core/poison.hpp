// SPDX-License-Identifier: Apache-2.0
// Memory that shows when it is read before it is written or after it is freed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/dtype.hpp"

namespace shardproof::poison {

/// 64-byte aligned memory, nullptr when there is none; after prepare_process() in huge pages, where the system has
/// them.
std::byte* allocate(std::int64_t bytes);
void release(std::byte* data);

/// Fixed: fixed_invalid. Floating types: a quiet NaN with a payload of its own. Integers: their minimum; u8: 0xA5.
void fill(Dtype dtype, std::byte* data, std::int64_t bytes);

/// The index of the first poisoned element, or -1. u8 has no value to spare and is never reported.
std::int64_t find(Dtype dtype, const std::byte* data, std::int64_t elements);

/// The index of the first out-of-range Fixed, or -1. Costs 0.1 ns an element where there is none.
std::int64_t find_out_of_range(const Fixed* data, std::int64_t elements);

}  // namespace shardproof::poison
