// SPDX-License-Identifier: Apache-2.0
// The process that a launcher started forks before it does anything: the child trains, and the parent watches over it.
// What becomes of the child, killed, stopped or stuck in a library, the parent sees, says, and ends the job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "impl/comm/flight.hpp"
#include "impl/comm/mpi.hpp"

namespace shardproof::comm {

/// For process 0 to write what it knows after another was lost, and to end the job: longer, and the monitor ends it.
inline constexpr double grace_seconds = 20;

/// A name that the processes of a job on this machine share, and others do not.
std::string job_name(const Launched& launched);
/// Where the record of process k of the job is until all processes of the machine have mapped it.
std::filesystem::path flight_path(std::string_view job, std::int64_t process);

/// Removes records of this user from that folder whose process and monitor were killed before that: nobody has locked
/// them, for at least a minute.
void remove_stale_flights();

/// Returns in the child, whose parent is its monitor: it passes on signals and the exit code, ends the child when the
/// launcher has ended, and
/// - a child that was killed, or ended before FlightRecorder::decide(): exit code `lost`, after `grace_seconds` for the
///   others to end the job by themselves, and at once for process 0;
/// - a child that is stopped for longer than its deadline and that grace, process 0 by 2 s: is killed, and the exit
///   code is `hang`; so is one in a Blocked function for 10 s more.
/// It keeps the record in the record's folder unless the child ended well: with a code below 8 (exit codes of the
/// harness) in Phase::ending, or interrupted. Before any thread exists. Throws CommError where it cannot fork.
std::unique_ptr<FlightRecorder> begin_monitored(const Launched& launched, int hang, int lost);

}  // namespace shardproof::comm
