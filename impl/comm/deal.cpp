// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "impl/comm/buffers.hpp"
#include "impl/comm/mpi.hpp"

namespace shardproof::comm {

std::int64_t Deal::first(std::int64_t process) const {
  if (ranks_per_process > 0) return std::min(ranks, process * ranks_per_process);
  return begin_of(ranks, processes, process);
}

std::int64_t Deal::process_of(std::int64_t rank) const {
  if (ranks_per_process > 0) return rank / ranks_per_process;
  const std::int64_t larger = ranks % processes, least = ranks / processes;
  if (rank < larger * (least + 1)) return rank / (least + 1);
  return larger + (rank - larger * (least + 1)) / least;
}

}  // namespace shardproof::comm
