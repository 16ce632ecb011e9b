// SPDX-License-Identifier: Apache-2.0
// One rank's end of a group over MPI. Collectives are MPI's own, on a communicator of the group's channel; messages go
// as a header, which says what they are, and pieces of their elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "impl/comm/buffers.hpp"
#include "impl/comm/delays.hpp"
#include "impl/comm/mpi/state.hpp"
#include "impl/comm/signature.hpp"

namespace shardproof::comm {

/// What a message is about, as it travels.
struct MpiHeader {
  char purpose[64] = {};
  std::int64_t dtype = 0, elements = 0, number = 0, stage = -1, microbatch = -1, overflow = 0;
};

/// Messages that are on their way, by receiver, and the communicator that they are on: it outlives the channel, for a
/// message may arrive later than its sender's end has gone.
struct MpiLink {
  struct Sent {
    MpiHeader header;
    std::vector<std::byte> elements;
    std::vector<MPI_Request> requests;  // the first is the header's, which ends when the receiver has taken it
  };
  MPI_Comm communicator = MPI_COMM_NULL;
  std::map<std::int64_t, std::deque<std::unique_ptr<Sent>>> sent;  // by the receiver's place
  std::mutex mutex;
  bool taken = false;  // an end exists
};

class MpiChannel final : public Channel {
 public:
  /// All but the group outlive the channel. Throws InternalError while another such end exists.
  MpiChannel(MpiState& state, MpiLink& link, Group group, const ThreadsOptions& options, TrafficLedger& traffic);
  ~MpiChannel() override { link_.taken = false; }

  void execute(KernelScope& scope, const Call& call) override;
  const Group& group() const override { return group_; }

 private:
  void collective(KernelScope& scope, const Call& call, const Buffers& own);
  void all_reduce(const Call& call, const Buffers& own);
  void reduce_scatter(const Call& call, const Buffers& own);
  void all_gather(const Call& call, const Buffers& own);
  void all_to_all(const Call& call, const Buffers& own);
  void send(const Call& call, const Buffers& own);
  void receive(KernelScope& scope, const Call& call, const Buffers& own);

  /// Over all members, or to the member `root`; both of the same elements, or apart.
  void reduce(const Call& call, Dtype dtype, const std::byte* input, std::byte* output, std::int64_t elements,
              std::int64_t root);
  /// Sums of Fixed of three and more, which may pass 2^63 and come back: beside the sum modulo 2^64 that of the
  /// elements over 2^8 (reduce.cpp).
  void reduce_fixed(const Call& call, const std::byte* input, std::byte* output, std::int64_t elements,
                    std::int64_t root);
  /// Sums of bytes, in words of 32 bits: Open MPI 4.1's operations on vectors of bytes saturate.
  void reduce_bytes(const Call& call, const std::byte* input, std::byte* output, std::int64_t elements,
                    std::int64_t root);
  /// By the one of these that the dtype needs.
  void reduce_any(const Call& call, const std::byte* input, std::byte* output, std::int64_t elements,
                  std::int64_t root);
  void broadcast(const Call& call, std::byte* data, std::int64_t elements, std::int64_t element, std::int64_t root);
  /// Calls f(begin, count) for pieces of at most chunk_elements.
  template <class F>
  void in_pieces(std::int64_t elements, F f) const;
  void wait(const Call& call, MPI_Request& request);
  std::string describe(const Call& call) const;
  std::int64_t wire_bytes(const Call& call) const;
  std::int64_t n() const { return group_.size(); }

  MpiState& state_;
  MpiLink& link_;
  const Group group_;
  const ThreadsOptions& options_;
  Delays delays_;
  TrafficLedger& traffic_;
};

/// The first message on the link that nobody has received, as a sentence; "" if there is none. Takes all of them, so
/// that their senders' requests end.
std::string undelivered(const MpiLink& link, const Group& group);

}  // namespace shardproof::comm
