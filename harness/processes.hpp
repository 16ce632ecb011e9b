// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that mpirun or srun started. Process 0 is the one that users see: it reads the command line,
// judges and writes, as alone. The others serve it: they take one training after the other, and run their ranks of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/exit_code.hpp"
#include "harness/ledgers.hpp"
#include "harness/node.hpp"
#include "harness/training.hpp"
#include "harness/transport.hpp"
#include "impl/comm/flight.hpp"
#include "impl/comm/mpi.hpp"

namespace shardproof::harness {

/// Where a launcher has started several processes, returns in one that has a monitor (impl/comm/monitor.hpp), with its
/// flight record; else nullptr. Before any thread exists.
std::unique_ptr<comm::FlightRecorder> monitored();

/// From MPI's start to its end; on process 0 main() runs the command in between.
class Processes {
 public:
  /// Throws NotBuilt, DeviceError, BadInput as MpiJob::begin(). The recorder outlives this.
  explicit Processes(comm::FlightRecorder* recorder);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Whether this process is to serve().
  bool serves() const;
  /// On process 0, before all else: the others' differences from it that change what is computed, one sentence a line;
  /// "" if there are none. From here on nodes() knows.
  std::string differences();
  /// Until process 0 has ended: the exit code of the run.
  ExitCode serve();
  /// Process 0 at its end: tells the others. Does not return where some of them failed in the middle of a training.
  void dismiss(ExitCode code);

 private:
  std::unique_ptr<comm::MpiJob> job_;
  std::vector<ProcessIdentity> all_;  // on process 0
};

/// The training over processes. On process 0 it throws what its own ranks throw, and JobFailed for what others said;
/// after that there can be no other.
class ProcessTraining {
 public:
  explicit ProcessTraining(comm::MpiJob& job) : job_(job) {}

  /// On process 0: gives the others the training. Throws NotSupported where the processes carry fewer ranks.
  void announce(const TrainingJob& job, std::int64_t observed_steps);
  /// This process's ranks.
  void run(const comm::Deal& deal, comm::ThreadsOptions options, const std::function<void(comm::World&)>& rank);
  /// On process 0 what all ranks have counted and, unless `spans` is empty, recorded, each process having given its own
  /// ranks'. Returns what the spans' names point into. Where processes do not share a clock, times are as process 0's
  /// clock had shown them when the gathering began; clocks that drift apart by 10 us a second make steps that lie a
  /// minute back wrong by 0.6 ms.
  std::shared_ptr<const std::set<std::string>> gather(const comm::Deal& deal, std::span<RankLedgers> ranks,
                                                      std::span<Spans> spans);

 private:
  comm::MpiJob& job_;
};

}  // namespace shardproof::harness
