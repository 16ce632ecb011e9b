// SPDX-License-Identifier: Apache-2.0
// How the collectives of a board meet: everybody publishes its call and buffers, then phases of copying out of each
// other's memory are separated by waits. A member leaves, also by an error, only when nobody reads its buffers any
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "impl/comm/board.hpp"

namespace shardproof::comm {

/// What one member lays open for one collective.
struct Post {
  const Call* call = nullptr;
  const std::byte* input = nullptr;
  const std::byte* output = nullptr;
  bool overflow = false;
};

class Rendezvous {
 public:
  explicit Rendezvous(Board& board)
      : board_(board), posts_(board.members.size()), inside_(board.members.size()), arrived_(board.members.size()) {}

 private:
  friend class Meeting;
  /// Waits for all. `reads`: after it, members read each other's buffers until they arrive again.
  void arrive(std::unique_lock<std::mutex>& lock, std::int64_t place, const Call& call, bool reads);
  void stop_reading();

  Board& board_;
  std::vector<Post> posts_;
  std::vector<bool> inside_, arrived_;
  std::int64_t arrivals_ = 0, generation_ = 0;
  std::int64_t readers_ = 0;  // members that may be reading the others' buffers
};

/// One member in one collective.
class Meeting {
 public:
  /// Publishes the post and waits for those of all members. `reads`: until next() or leave(), from their buffers.
  /// Throws CommError when calls do not match.
  Meeting(Rendezvous& rendezvous, std::int64_t place, const Post& post, bool reads);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  std::span<const Post> posts() const { return rendezvous_.posts_; }
  /// Waits until all members have done what comes before: to read on, or to leave.
  void next() { pass(true); }
  void leave() { pass(false); }

 private:
  void pass(bool reads);

  Rendezvous& rendezvous_;
  const std::int64_t place_;
  const Call& call_;
  bool reading_ = false;
};

}  // namespace shardproof::comm
