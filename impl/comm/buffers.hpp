// SPDX-License-Identifier: Apache-2.0
// The memory that a call reads and writes, as every transport opens it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace shardproof::comm {

struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;  ///< of an all-reduce, and of a broadcast's other ends than the root, the only one
  bool overflow = false;        ///< the input has its flag up, or stands for something that has
  std::int64_t element = 0;     ///< bytes
};

/// Inside a kernel. Outputs are poisoned where the device is. Throws InternalError where input and output overlap, but
/// for the part of one that is the other.
Buffers open(KernelScope& scope, const Call& call, std::int64_t place);

std::int64_t sum_of_first(const std::vector<std::int64_t>& counts, std::int64_t k);

/// Part k of `elements` cut into n parts whose sizes differ by at most one, the larger first, begins here.
std::int64_t begin_of(std::int64_t elements, std::int64_t n, std::int64_t k);

}  // namespace shardproof::comm
