// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/core/memory_ledger.hpp"

namespace shardproof {

/// Bytes of device space that the calling thread has allocated less those that it has released, over all ledgers. A
/// difference of two calls is what the thread keeps of its own work: that another rank's thread drops a message
/// meanwhile, which its sender had allocated, does not show.
std::int64_t allocated_by_this_thread(Category category);

}  // namespace shardproof
