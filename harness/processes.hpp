// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that mpirun or srun started. Process 0 is the one that users see: it reads the command line,
// judges and writes, as alone. The others serve it: they take one training after the other, and run their ranks of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/exit_code.hpp"
#include "harness/ledgers.hpp"
#include "harness/training.hpp"
#include "harness/transport.hpp"
#include "impl/comm/mpi.hpp"

namespace shardproof::harness {

/// From MPI's start to its end; on process 0 main() runs the command in between.
class Processes {
 public:
  /// Throws NotBuilt, DeviceError, BadInput as MpiJob::begin().
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Whether this process is to serve().
  bool serves() const;
  /// Until process 0 has ended: the exit code of the run.
  ExitCode serve();
  /// Process 0 at its end: tells the others. Does not return where some of them failed in the middle of a training.
  void dismiss(ExitCode code);

 private:
  std::unique_ptr<comm::MpiJob> job_;
};

/// Process 0: the training over processes. Throws what its own rank throws, and JobFailed for what others said; after
/// that there can be no other. NotSupported where there are fewer processes than ranks.
class ProcessTraining {
 public:
  explicit ProcessTraining(comm::MpiJob& job) : job_(job) {}

  /// On process 0: gives the others the training.
  void announce(const TrainingJob& job, std::int64_t observed_steps);
  /// This process's rank.
  void run(std::int64_t ranks, const comm::ThreadsOptions& options, const std::function<void(comm::World&)>& rank);
  /// On process 0 those of all ranks.
  std::vector<RankLedgers> gather(std::int64_t ranks, const RankLedgers& own);

 private:
  comm::MpiJob& job_;
};

}  // namespace shardproof::harness
