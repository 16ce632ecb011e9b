// SPDX-License-Identifier: Apache-2.0
// One rank's end of a group that lies on several processes.
//
// In a collective the members of one process meet as threads do; one of them combines what they give, speaks with the
// other processes by MPI's own collectives, and the others take the result from its memory. Sums are first over the
// members of a process, in the group's order, then over processes, in an order of MPI's. Parts of an all_to_all and
// messages go straight from member to member: a message is a header, which must match, and pieces of its elements;
// within a process it lends its tensor, as among threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "impl/comm/mpi/board.hpp"
#include "impl/comm/mpi/collectives.hpp"

namespace shardproof::comm {

class MpiChannel final : public Channel {
 public:
  /// All but the group outlive the channel. Throws as ThreadChannel.
  MpiChannel(MpiState& state, MpiBoard& board, Group group, TrafficLedger& traffic);
  ~MpiChannel() override;

  void execute(KernelScope& scope, const Call& call) override;
  const Group& group() const override { return group_; }

 private:
  using Inputs = std::span<const std::byte* const>;

  void recorded(KernelScope& scope, const Call& call, const Buffers& own);
  /// Throws CommError where other members have made another call, as far as their flight records say.
  void require_match() const;
  void collective(KernelScope& scope, const Call& call, const Buffers& own);
  /// For all members here, whose inputs these are: what the others take is in board_.said.
  void speak(const Call& call, const Buffers& own, Inputs inputs, bool overflow);
  /// Says to all processes whether a member has its flag up; true where sums of Fixed may leave int64 on their way.
  bool agree(const MpiCollectives& mpi, const Call& call, Inputs inputs, bool overflow);
  /// What the member that spoke, perhaps this one, has for this one.
  void take(const Call& call, const Buffers& own) const;
  void all_to_all(KernelScope& scope, const Call& call, const Buffers& own);
  void exchange(const Call& call, const Buffers& own, std::span<const Post> posts, bool overflow);
  void send(const Call& call, const Buffers& own);
  void receive(KernelScope& scope, const Call& call, const Buffers& own);

  MpiCollectives collectives(const Call& call) const;
  /// The member here that speaks: who has what a broadcast spreads, or the first.
  std::int64_t speaker(const Call& call) const;
  int own_process() const { return board_.process[static_cast<std::size_t>(group_.place)]; }
  /// The call as the members here see it: places and counts are theirs.
  Call among_members_here(const Call& call) const;
  std::string describe(const Call& call) const;
  std::int64_t wire_bytes(const Call& call) const;
  std::int64_t n() const { return group_.size(); }
  bool alone() const { return board_.here.size() == 1; }

  MpiState& state_;
  MpiBoard& board_;
  const Group group_;
  const std::int64_t index_;  // among the members here
  const std::uint16_t row_;   // of the flight record
  Delays delays_;
  TrafficLedger& traffic_;
};

}  // namespace shardproof::comm
