// SPDX-License-Identifier: Apache-2.0
// The messages of a board: one queue for each (from, to). A message lends the sender's tensor to the receiver, who
// copies straight out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
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
  std::vector<std::byte> copied;  // of the data, once the sender has gone
  bool moving = false;            // the receiver is copying
};

class Mailbox {
 public:
  explicit Mailbox(Board& board) : board_(board) {}

  /// Blocks until at most `depth` messages to that receiver are undelivered.
  void send(std::int64_t place, const Call& call, Message message, std::int64_t depth);
  /// Blocks for a message and calls take() with it, without a lock. Throws CommError when it is not what `call`
  /// expects.
  void receive(std::int64_t place, const Call& call, const std::function<void(const Message&)>& take);
  /// The sender's memory will go: undelivered messages live on as copies.
  void detach(std::int64_t place);

 private:
  Board& board_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<Message>> boxes_;  // by (from, to)
};

}  // namespace shardproof::comm
