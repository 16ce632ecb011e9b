// SPDX-License-Identifier: Apache-2.0
// Collectives and messages of one group of ranks. Every call runs on a queue, carries a purpose (which labels traffic,
// errors and injection) and returns a Work. All members must make the same calls on a channel in the same order; a call
// that does not match, a peer that is lost (RankLost) or a wait beyond the stated time (HangError) is a CommError that
// names rank, call, axis and purpose.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/traffic_ledger.hpp"
#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/wide_total.hpp"

namespace shardproof::comm {

/// bit_or: integers only.
enum class Operator : std::uint8_t { sum, max, min, bit_or };
std::string_view name_of(Operator op);

/// What a message is about: a part of its identity, like its number. -1: nothing is said.
struct Tag {
  std::int64_t stage = -1, microbatch = -1;
  bool operator==(const Tag&) const = default;
};
/// ", stage 1, microbatch 0"; "" where nothing is said.
std::string print(const Tag& tag);

/// One collective or message as one rank makes it.
struct Call {
  Kind kind = Kind::barrier;
  Operator op = Operator::sum;
  Tensor input = {}, output = {};                       ///< all_reduce and broadcast: in place, in `output`
  std::vector<std::int64_t> inputs = {}, outputs = {};  ///< elements for or from each member, where they may differ
  std::int64_t peer = 0;                                ///< place in the group: root, destination or source
  std::string_view purpose = {};                        ///< a literal
  Tag tag = {};                                         ///< of messages
  std::int64_t number = 0;  ///< from 1: of the channel's collectives, or of the messages to or from the peer
  bool overflow = false;    ///< the input stands for something whose overflow flag is up
  bool internal = false;    ///< part of another call (bounds): faults are not injected into it
  bool two_lanes = false;   ///< half of the bytes are a second lane; the ledger counts them under that purpose
};

/// The tensor whose bytes the traffic ledger counts; empty for a barrier.
const Tensor& payload(const Call& call);

/// The members of a group and one rank's place in it.
struct Group {
  std::string axis;     ///< "tp", "dp", ..., as errors and the traffic ledger write it
  std::string channel;  ///< one of the group's
  std::vector<Rank> members;
  std::int64_t place = 0;  ///< members[place] is this rank

  std::int64_t size() const { return static_cast<std::int64_t>(members.size()); }
};

/// One rank's end of a group on a transport. Decorators (injection) wrap one.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Inside a kernel of this rank: blocks until the rank's part is done. Sets the outputs' overflow flags where a
  /// member's input had one.
  virtual void execute(KernelScope& scope, const Call& call) = 0;
  virtual const Group& group() const = 0;
};

/// Completion of a call.
class Work {
 public:
  explicit Work(Event event) : event_(std::move(event)) {}
  /// Blocks the host; throws what went wrong.
  void wait() const { event_.wait(); }
  /// Later work of the queue starts after the call.
  void before(Queue& queue) const { queue.wait(event_); }

 private:
  Event event_;
};

/// What techniques call. Sizes must agree among members (CommError) and with the tensors (InternalError). Collectives
/// of a channel run on one queue; messages may run on others beside them. A communicator ends before its rank's device.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Channel> channel);
  Communicator(Communicator&&) = default;  // a copy would count its calls anew
  Communicator& operator=(Communicator&&) = default;

  const Group& group() const { return channel_->group(); }
  std::int64_t size() const { return group().size(); }
  std::int64_t place() const { return group().place; }

  /// In place; nothing happens in a group of one. Reduces in the order of the group's members, so that every member
  /// gets the same bits in every dtype. Sums of integers are modulo 2^bits; a sum of Fixed whose true total is out of
  /// range raises overflow.
  Work all_reduce(Queue& queue, const Tensor& tensor, Operator op, std::string_view purpose);
  /// The total of unfinished sums. `exact`: sums the members' bounds first (8 bytes, the same purpose); where they show
  /// that one lane may overflow, every member goes on with two lanes (reference/ARITHMETIC.md, section 2).
  Work all_reduce(Queue& queue, const Accumulator& sum, std::string_view purpose);
  Work all_reduce(Queue& queue, const WideTotal& total, std::string_view purpose);
  /// output = the members' sum of part `place` of input; part k has counts[k] elements. `output` may be that part.
  Work reduce_scatter(Queue& queue, const Tensor& input, const Tensor& output, const std::vector<std::int64_t>& counts,
                      Operator op, std::string_view purpose);
  /// output = the members' inputs one after the other; member k's has counts[k] elements. `input` may be part `place`.
  Work all_gather(Queue& queue, const Tensor& input, const Tensor& output, const std::vector<std::int64_t>& counts,
                  std::string_view purpose);
  Work broadcast(Queue& queue, const Tensor& tensor, std::int64_t root, std::string_view purpose);
  /// The next `to[k]` elements of input go to member k, the next `from[k]` of output come from it.
  Work all_to_all(Queue& queue, const Tensor& input, const Tensor& output, const std::vector<std::int64_t>& to,
                  const std::vector<std::int64_t>& from, std::string_view purpose);
  /// Is done when the message is on its way: at most `send_depth` undelivered ones wait for each receiver. The message
  /// holds the tensor, without a copy, until it is delivered: the tensor may be dropped, but not written before that.
  /// A message that is never received is a CommError at the end of the run.
  Work send(Queue& queue, const Tensor& tensor, std::int64_t to, std::string_view purpose, Tag tag = {});
  /// The next message from there, which must be of this dtype, size, purpose and tag (CommError).
  Work receive(Queue& queue, const Tensor& tensor, std::int64_t from, std::string_view purpose, Tag tag = {});
  Work barrier(Queue& queue, std::string_view purpose);

 private:
  Work submit(Queue& queue, Call call);
  void require(bool ok, const Call& call, std::string_view what) const;
  void require_counts(const Call& call, const std::vector<std::int64_t>& counts, const Tensor& tensor) const;

  std::shared_ptr<Channel> channel_;  // kernels that still wait in a queue hold it too
  std::shared_ptr<const std::string> label_;
  std::int64_t collectives_ = 0;
  std::vector<std::int64_t> sent_, received_;  // to and from each member
};

}  // namespace shardproof::comm
