// SPDX-License-Identifier: Apache-2.0
// Where the members of a group that lies on several processes meet. Those of one process meet on a board of threads;
// one of them speaks for all to the other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "impl/comm/mpi/shared_memory.hpp"
#include "impl/comm/mpi/state.hpp"
#include "impl/comm/thread_channel.hpp"

namespace shardproof::comm {

/// What a message is about, as it travels.
struct MpiHeader {
  char purpose[64] = {};
  std::int64_t dtype = 0, elements = 0, number = 0, stage = -1, microbatch = -1, overflow = 0;
};

/// The signature that the sender's call had; the purpose is the header's memory.
Signature signature_of(const MpiHeader& header);

/// One member's messages to other processes that are on their way, by the receiver's place. They outlive its channel: a
/// message may arrive later.
struct MpiOutbox {
  struct Sent {
    MpiHeader header;
    std::vector<std::byte> elements;
    std::vector<MPI_Request> requests;  // the first is the header's, which ends when the receiver has taken it
  };
  std::map<std::int64_t, std::deque<std::unique_ptr<Sent>>> sent;
  std::mutex mutex;
};

/// Two members whose message or part of an all_to_all a tag belongs to.
enum class MpiTraffic : std::uint8_t { header, elements, part };

/// The board itself is of the members that are threads of this process.
class MpiBoard final : public ThreadBoard {
 public:
  /// `process_of`: of each of the group's members, its process; `own`: this one.
  MpiBoard(ThreadState& threads, const Group& group, const std::vector<std::int64_t>& process_of, std::int64_t own);
  ~MpiBoard() override;

  const std::vector<Rank> all;            ///< the group's members
  std::vector<std::int64_t> here;         ///< the places of this process's
  std::vector<int> process;               ///< of each member, its process's rank in the communicator
  std::vector<std::int64_t> index;        ///< of each member, its place among those of its process
  std::vector<std::int64_t> processes;    ///< in the communicator's order, of the job
  MPI_Comm communicator = MPI_COMM_NULL;  ///< of the processes; null until the first member here has made it
  std::unique_ptr<SharedMemory> shared;   ///< of the processes, if they can; null until the communicator is there
  std::vector<MpiOutbox> outboxes;        ///< of each member here

  /// Of the collective under way, by the member that speaks and for the others to read.
  struct Said {
    bool overflow = false;
    const std::byte* result = nullptr;
    std::vector<std::byte> memory;
  } said;
  std::vector<const Call*> calls;  ///< of each member here, of an all_to_all

  bool is_here(std::int64_t place) const;
  /// Processes are told apart by MPI: with at most 64 members each the tags are below 2^14 of the 2^15 that MPI
  /// guarantees.
  int tag(MpiTraffic what, std::int64_t from, std::int64_t to) const;

  /// After all have made their last call: the first message to this process that nobody has received, as a sentence; ""
  /// if there is none. Takes all that came from other processes, so that their senders' requests end.
  std::string undelivered() const;
};

}  // namespace shardproof::comm
