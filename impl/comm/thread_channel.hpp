// SPDX-License-Identifier: Apache-2.0
// The transport between threads: ranks copy straight out of each other's memory.
//
// An all-reduce is a reduce-scatter and an all-gather, as in the ring algorithm: member k reduces part k, which it
// reads from all others, and then copies the other parts from their members. Each rank copies the ring's 2(n-1)/n of
// the payload (Patarasuk and Yuan, JPDC 69, 2009) with three waits instead of 2(n-1), and an element is reduced by one
// rank, in the order of the members.
#pragma once

#include <cstdint>
#include <memory>

#include "impl/comm/buffers.hpp"
#include "impl/comm/delays.hpp"
#include "impl/comm/mailbox.hpp"
#include "impl/comm/rendezvous.hpp"
#include "impl/comm/traffic_ledger.hpp"

namespace shardproof::comm {

/// A board with its two ways to meet.
struct ThreadBoard : Board {
  using Board::Board;
  Rendezvous rendezvous{*this};
  Mailbox mailbox{*this};
};

/// The board of the members that all are threads of this process; made by the first who comes.
ThreadBoard& meet(ThreadState& state, const BoardKey& key);

class ThreadChannel final : public Channel {
 public:
  /// `board` belongs to this end's world and outlives it. Throws InternalError while another such end exists,
  /// CommError where a message to an earlier one was never received.
  ThreadChannel(ThreadBoard& board, std::int64_t place, TrafficLedger& traffic);
  ~ThreadChannel() override;

  void execute(KernelScope& scope, const Call& call) override;
  const Group& group() const override { return group_; }

 private:
  /// Each returns the bytes that it copied out of other ranks' memory.
  std::int64_t collective(KernelScope& scope, const Call& call);
  std::int64_t all_reduce(Meeting& meeting, const Call& call, const Buffers& own);
  std::int64_t gather(const Meeting& meeting, const Call& call, const Buffers& own);
  std::int64_t exchange(const Meeting& meeting, const Call& call, const Buffers& own);
  std::int64_t reduce_part(const Meeting& meeting, const Call& call, std::int64_t begin, std::int64_t count,
                           std::byte* out);
  std::int64_t receive(KernelScope& scope, const Call& call);
  void send(KernelScope& scope, const Call& call);

  /// In pieces of at most chunk_elements. Returns the bytes copied.
  std::int64_t copy(std::byte* to, const std::byte* from, std::int64_t elements, std::int64_t size) const;
  std::int64_t n() const { return group_.size(); }

  ThreadBoard& board_;
  Group group_;
  Delays delays_;
  TrafficLedger& traffic_;
};

}  // namespace shardproof::comm
