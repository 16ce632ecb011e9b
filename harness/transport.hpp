// SPDX-License-Identifier: Apache-2.0
// What carries the ranks of this run: it follows from how the process was started.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardproof::comm {
class MpiJob;
}

namespace shardproof::harness {

/// The processes that a launcher started; nullptr where ranks are threads.
comm::MpiJob* processes();
/// "threads" or "mpi".
std::string_view transport();
/// Whether ranks are threads, or there are so many processes.
bool has_processes_for(std::int64_t ranks);

}  // namespace shardproof::harness
