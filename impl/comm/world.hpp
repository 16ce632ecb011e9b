// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace shardproof::comm {

/// One rank's view of all ranks.
class World {
 public:
  virtual ~World() = default;
  virtual Rank rank() const = 0;
  virtual std::int64_t size() const = 0;
  /// This rank's end of the group of these world ranks, in this order; it must be one of them (InternalError). Members
  /// meet by (axis, members, channel); calls on different channels are independent of each other.
  virtual Communicator communicator(std::string axis, std::vector<Rank> members, std::string channel) = 0;
  virtual TrafficLedger& traffic() = 0;
  /// What this rank computes on; immediate, and slow where an injection says so.
  virtual std::unique_ptr<Queue> queue(Device& device) = 0;

  /// The group of all ranks, axis "world".
  Communicator all(std::string channel);
};

inline constexpr std::int64_t most_thread_ranks = 64;
inline constexpr double most_timeout_seconds = 1e6;

struct ThreadsOptions {
  /// While no rank begins or ends a call for so long, every wait is a hang: time for a rank to compute in between, and
  /// after the last call of a deadlock, or of a rank that is stuck, all that passes before the error. However long a
  /// single wait is, it is none while other ranks go on.
  double timeout_seconds = 60;
  /// Called now and then by ranks that wait, with a lock held: it must not communicate. What it throws is the rank's.
  std::function<void()> poll = {};
  std::optional<std::uint64_t> delays = {};                   ///< seed of random delays before and inside calls
  std::int64_t chunk_elements = (std::int64_t{1} << 31) - 1;  ///< copies and reductions go in pieces of at most this
  bool shared_memory = true;                 ///< over MPI: processes of one machine reduce in it, not by MPI's calls
  std::int64_t send_depth = 1;               ///< undelivered messages per receiver; 0: sends rendezvous
  std::vector<std::string> injections = {};  ///< as --inject takes them (inject.hpp)
};

/// Runs `rank` on one thread per rank and returns when all have ended. The first error stops every rank, also one that
/// waits, and is thrown again with the rank's name in front; CommErrors that only follow from it are dropped: any other
/// error counts before them, then the first in time. Throws BadInput for more than 64 ranks (naming the limit and
/// mpirun). After a run without error: CommError where a message was never received (naming sender, receiver and
/// message), BadInput where an injection has met no call.
void run_threads(std::int64_t ranks, const ThreadsOptions& options, const std::function<void(World&)>& rank);

}  // namespace shardproof::comm
