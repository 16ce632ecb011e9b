// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes, started by mpirun or srun. Plain C++: MPI is built in only where it was found
// (impl/comm/mpi/), and begin() says so where it was not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/world.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

/// What the environment of a process says that a launcher started: mpirun (Open MPI), srun with PMIx or PMI-2.
struct Launched {
  std::int64_t rank = 0, size = 1;
  std::string_view launcher;  ///< "mpirun", "srun"
};
/// None without a launcher. Throws BadInput for variables that are no such numbers.
std::optional<Launched> launched();

/// Which process carries which ranks of a world: blocks of consecutive ones, one after the other.
struct Deal {
  std::int64_t ranks = 1, processes = 1;
  /// Of every process, as far as there are ranks; 0: as evenly as possible, the larger blocks first.
  std::int64_t ranks_per_process = 0;

  /// The first rank of this process; of the one after the last, `ranks`.
  std::int64_t first(std::int64_t process) const;
  std::int64_t count(std::int64_t process) const { return first(process + 1) - first(process); }
  std::int64_t process_of(std::int64_t rank) const;
  /// Processes that carry a rank: the first ones.
  std::int64_t used() const { return process_of(ranks - 1) + 1; }
};

class FlightRecorder;

/// A job of several processes, from MPI's start to its end. All calls but the last three are made by all processes in
/// the same order; those that wait for an idle process have no deadline, and leave it idle.
class MpiJob {
 public:
  /// Starts MPI where a launcher has started more than one process; else none. Throws NotBuilt where this binary has no
  /// MPI, DeviceError where it has no threads. The recorder (monitor.hpp), if any, outlives the job: with it a wait
  /// names who is to blame, and ends where another process has died.
  static std::unique_ptr<MpiJob> begin(FlightRecorder* recorder = nullptr);
  /// The library's name and version, and whether it takes buffers of GPUs; "not built".
  static std::string library();
  virtual ~MpiJob() = default;

  /// This process, of so many.
  virtual std::int64_t process() const = 0;
  virtual std::int64_t size() const = 0;
  /// What process 0 says.
  virtual std::string broadcast(const std::string& text) = 0;
  /// On process 0 what the first `processes` say, in their order; empty on others. Processes beyond do not call.
  virtual std::vector<std::string> gather(std::int64_t processes, const std::string& text) = 0;
  /// The first `processes` go on when process 0 has come. Processes beyond do not call.
  virtual void wait_for_first(std::int64_t processes) = 0;
  /// On process 0 what to add to the clocks (nanoseconds) of the first `processes` to have its own: of each by the
  /// quickest of several round trips, half of which is the most that it can be wrong (Cristian, Distributed Computing
  /// 3, 1989). Empty on others. Processes beyond do not call.
  virtual std::vector<std::int64_t> clock_offsets(std::int64_t processes,
                                                  const std::function<std::int64_t()>& clock) = 0;
  /// This process's ranks of a world, each on a thread; the processes that carry one call it. As run_threads(), but
  /// that any error ends the job: it is thrown where it was met, and what fail() said in all that wait for it.
  virtual void run(const Deal& deal, const ThreadsOptions& options, const std::function<void(World&)>& rank) = 0;

  /// This process meets the others no more: they end their waits with this error.
  virtual void fail(std::string_view reason, int exit_code) = 0;
  /// Until process 0 has written what it knows and ends the job; after some seconds ends it itself.
  [[noreturn]] virtual void await_end(int exit_code) = 0;
  /// Ends the job with this exit code for all, now.
  [[noreturn]] virtual void part(int exit_code) = 0;
};

/// Another process said that it failed: its reason, and the exit code that it asks for.
struct JobFailed : CommError {
  JobFailed(const std::string& text, int code) : CommError(text), exit_code(code) {}
  int exit_code;
};

}  // namespace shardproof::comm
