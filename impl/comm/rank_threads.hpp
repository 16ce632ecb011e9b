// SPDX-License-Identifier: Apache-2.0
// Ranks of a world as threads of this process: all of them, or those that a launcher's process carries.
#pragma once

#include <cstdint>
#include <functional>

#include "impl/comm/board.hpp"

namespace shardproof::comm {

/// Throws BadInput, every finding a line, for options and numbers of threads that cannot be.
void require_legal(std::int64_t threads, const ThreadsOptions& options);

/// Runs body(rank) on one thread for each of `count` ranks from `first`, and returns when all have ended. The first
/// error stops every rank, also one that waits, and is thrown again with the rank's name in front (JobFailed as it is);
/// CommErrors that only follow from it are dropped: any other error counts before them, then the first in time.
void run_ranks(ThreadState& state, Rank first, std::int64_t count, const std::function<void(Rank)>& body);

}  // namespace shardproof::comm
