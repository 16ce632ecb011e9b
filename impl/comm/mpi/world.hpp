// SPDX-License-Identifier: Apache-2.0
// A world of ranks on several processes, for one run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "impl/comm/inject.hpp"
#include "impl/comm/mpi/board.hpp"
#include "impl/comm/mpi/state.hpp"
#include "impl/comm/traffic_ledger.hpp"

namespace shardproof::comm {

/// What the ranks of one process share in it.
class MpiRun {
 public:
  /// `everybody`: the processes that carry ranks; `own`: this one. `meeting`: a communicator of at least those, for
  /// nothing else.
  MpiRun(MpiState& state, MPI_Comm everybody, MPI_Comm meeting, std::int64_t own, const Deal& deal,
         const ThreadsOptions& options);
  ~MpiRun() { state_.look = {}; }

  MpiState& state() { return state_; }
  ThreadState& threads() { return threads_; }
  /// This rank's end of the group.
  std::unique_ptr<Channel> channel(Group group, TrafficLedger& traffic);
  /// Sleeps until `seconds` are over or a rank has failed. Throws JobFailed.
  void pause(double seconds);
  /// After the last call of the ranks here. Throws CommError where a message was never received.
  void end();

 private:
  MpiBoard& meet(const Group& group, const std::vector<std::int64_t>& process_of);
  MPI_Comm make_communicator(const MpiBoard& board, Rank rank);
  void end_messages(MpiBoard& board);

  MpiState& state_;
  const MPI_Comm everybody_, meeting_;
  const std::int64_t own_;
  const Deal deal_;
  ThreadState threads_;
};

class MpiWorld final : public World {
 public:
  MpiWorld(MpiRun& run, Rank rank, const std::vector<Injection>& injections);

  Rank rank() const override { return rank_; }
  std::int64_t size() const override { return std::ssize(run_.threads().life); }
  TrafficLedger& traffic() override { return traffic_; }
  std::unique_ptr<Queue> queue(Device& device) override { return injector_.queue(device); }
  Communicator communicator(std::string axis, std::vector<Rank> members, std::string channel) override;
  const Injector& injector() const { return injector_; }

 private:
  MpiRun& run_;
  const Rank rank_;
  TrafficLedger traffic_;
  Injector injector_;
};

}  // namespace shardproof::comm
