// SPDX-License-Identifier: Apache-2.0
// The messages of a board: one queue for each (from, to). A message lends the sender's tensor to the receiver, who
// copies straight out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "impl/comm/board.hpp"
#include "impl/comm/signature.hpp"

namespace shardproof::comm {

struct Message {
  Signature signature;
  Tensor tensor;  // keeps `data` alive
  const std::byte* data = nullptr;
  bool overflow = false;
  std::vector<std::byte> copied = {};  // of the data, once the sender has gone
  bool busy = false;                   // somebody copies its data without the lock: it stays where it is
  std::int64_t opening = 0;            // by which of the sender's ends it was sent, from 1
};

class Mailbox {
 public:
  explicit Mailbox(Board& board) : board_(board), openings_(board.members.size()) {}

  /// A new end of this member, with the board's lock held: its messages are numbered from 1 again. Throws CommError
  /// where one to it from before was never received.
  void open(std::int64_t place);
  /// Blocks until at most `depth` messages to that receiver are undelivered.
  void send(std::int64_t place, const Call& call, Message message, std::int64_t depth);
  /// Blocks for a message and calls take() with it, without a lock. Throws CommError when it is not what `call`
  /// expects.
  void receive(std::int64_t place, const Call& call, const std::function<void(const Message&)>& take);
  /// The sender's memory will go: undelivered messages live on as copies.
  void detach(std::int64_t place) noexcept;
  /// Of a board whose members have ended: the first message that nobody has received, as a sentence; "" if there is
  /// none.
  std::string undelivered() const;

 private:
  using Ends = std::pair<std::int64_t, std::int64_t>;  // from, to
  std::string lost(const Ends& ends, const Message& message) const;
  std::string foreign(std::int64_t place, const Call& call, const Message& message) const;

  Board& board_;
  std::vector<std::int64_t> openings_;  // of each member
  std::map<Ends, std::deque<Message>> boxes_;
};

}  // namespace shardproof::comm
