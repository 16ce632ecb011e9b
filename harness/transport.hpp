// SPDX-License-Identifier: Apache-2.0
// What carries the ranks of this run: it follows from how the process was started.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "harness/node.hpp"

namespace shardproof::comm {
class FlightRecorder;
class MpiJob;
struct Deal;
}  // namespace shardproof::comm

namespace shardproof::harness {

/// The processes that a launcher started; nullptr where ranks are threads.
comm::MpiJob* processes();
/// What this process writes down of its calls; nullptr where ranks are threads.
comm::FlightRecorder* flight();
/// When this run fails, the flight records of its processes are kept in FOLDER/flight; those of an earlier one are
/// removed. Throws WriteError.
void keep_flight_in(const std::filesystem::path& folder);
/// The machines of the processes; none where ranks are threads.
const std::vector<Node>& nodes();
/// "threads" or "mpi".
std::string_view transport();
/// --ranks-per-process: so many ranks are threads of each process that mpirun or srun started, as far as a case has
/// ranks. 0: those of each case as evenly as possible.
void set_ranks_per_process(std::int64_t ranks);
std::int64_t ranks_per_process();
/// Not --no-shared-memory: processes of one machine reduce through memory that they share.
void set_shared_memory(bool used);
bool shared_memory();
/// How many ranks the processes carry; threads of one process, most_thread_ranks.
std::int64_t most_ranks();
/// That all processes may use together; `here` where ranks are threads.
std::int64_t processors(std::int64_t here);
/// Which process carries which ranks of so many. For processes() alone.
comm::Deal dealt(std::int64_t ranks);

}  // namespace shardproof::harness
