// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/rendezvous.hpp"

#include <utility>

#include "impl/comm/signature.hpp"

namespace shardproof::comm {

void Rendezvous::stop_reading() {
  if (--readers_ == 0) board_.changed.notify_all();
}

void Rendezvous::arrive(std::unique_lock<std::mutex>& lock, std::int64_t place, const Call& call, bool reads) {
  arrived_[static_cast<std::size_t>(place)] = true;
  board_.state.note_progress();
  if (++arrivals_ == std::ssize(posts_) && !board_.stopped()) {
    arrivals_ = 0;
    arrived_.assign(posts_.size(), false);
    readers_ = reads ? std::ssize(posts_) : 0;
    ++generation_;
    board_.changed.notify_all();
    return;
  }
  const auto mine = generation_;
  try {
    board_.await(
        lock, place, call, [this, mine] { return generation_ != mine; },
        [this](std::int64_t k) { return !arrived_[static_cast<std::size_t>(k)]; });
  } catch (...) {
    if (generation_ == mine) {  // nobody may meet a member that has gone
      if (arrivals_ > 0) --arrivals_;
      arrived_[static_cast<std::size_t>(place)] = false;
    }
    // Copying ends by itself, so this wait needs no limit.
    board_.changed.wait(lock, [this] { return readers_ == 0; });
    throw;
  }
}

Meeting::Meeting(Rendezvous& rendezvous, std::int64_t place, const Post& post, bool reads)
    : rendezvous_(rendezvous), place_(place), call_(*post.call) {
  auto& board = rendezvous_.board_;
  std::unique_lock lock(board.state.mutex);
  board.check(place, call_);
  const auto at = static_cast<std::size_t>(place);
  if (rendezvous_.inside_[at]) {
    throw InternalError("channel " + board.channel + " of axis " + board.axis + ": collectives on two queues at once");
  }
  rendezvous_.posts_[at] = post;
  if (rendezvous_.arrivals_ + 1 == std::ssize(board.members)) {
    std::vector<Signature> signatures;
    for (const auto& p : rendezvous_.posts_) signatures.emplace_back(*p.call);
    if (auto why = mismatch(board.members, signatures); !why.empty()) board.stop(Ending::error, std::move(why));
  }
  rendezvous_.inside_[at] = true;
  try {
    rendezvous_.arrive(lock, place_, call_, reads);
  } catch (...) {
    rendezvous_.inside_[at] = false;
    throw;
  }
  reading_ = reads;
}

void Meeting::pass(bool reads) {
  std::unique_lock lock(rendezvous_.board_.state.mutex);
  reading_ = false;
  rendezvous_.stop_reading();
  rendezvous_.arrive(lock, place_, call_, reads);
  reading_ = reads;
}

Meeting::~Meeting() {
  auto& board = rendezvous_.board_;
  std::unique_lock lock(board.state.mutex);
  rendezvous_.inside_[static_cast<std::size_t>(place_)] = false;
  if (!reading_) return;
  rendezvous_.stop_reading();
  board.abandon(place_);
  board.changed.wait(lock, [this] { return rendezvous_.readers_ == 0; });
}

}  // namespace shardproof::comm
