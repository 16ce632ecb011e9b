// SPDX-License-Identifier: Apache-2.0
// What the threads of a world share: who lives, who waits for whom, and one board per channel of a group.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/world.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

/// A wait that ended because of an error elsewhere: the error to report only where there is no other.
struct Abandoned : CommError {
  using CommError::CommError;
};

/// When a board ended, in the order of time: what stops a board is one failure, whichever of its members tell of it.
struct BoardEnd {
  std::int64_t order;
};
template <class E>
struct Ended : E, BoardEnd {
  Ended(const std::string& text, std::int64_t when) : E(text), BoardEnd{when} {}
};

class Board;
using BoardKey = std::tuple<std::string, std::vector<Rank>, std::string>;  // axis, members, channel

/// What ends a board, as an error of its members: CommError, HangError, RankLost or Abandoned.
enum class Ending : std::uint8_t { error, hang, lost, abandoned };

enum class Life : std::uint8_t { running, ended, failed };

struct Waiting {
  Rank rank;
  const Board* board;
  const Call* call;
};

std::string name_of(Rank rank);

/// The group of these ranks as `self` sees it, of a world of so many. Throws InternalError for members that are no
/// ranks of it, stand twice, or are without `self`.
Group group_of(std::string axis, std::vector<Rank> members, std::string channel, Rank self, std::int64_t world_size);

/// One lock for all ranks and channels. It is held for a few words' work: elements move without it.
struct ThreadState {
  using Clock = std::chrono::steady_clock;
  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  ThreadState(std::int64_t ranks, const ThreadsOptions& threads_options);

  const ThreadsOptions options;
  std::mutex mutex;
  std::vector<Life> life;  // of each rank
  std::optional<Rank> failed;
  std::int64_t failures = 0;                  // counts what went wrong, in the order of time
  Clock::time_point progress = Clock::now();  // when a rank last began or ended a call
  std::condition_variable failure;            // a rank has failed
  std::vector<const Waiting*> waits;
  std::map<BoardKey, std::unique_ptr<Board>> boards;

  /// The rank makes no more calls. Whoever waits for it stops; after a failure, everybody.
  void leave(Rank rank, Life how);
  /// With the lock held: a rank begins or ends a call.
  void note_progress() { progress = Clock::now(); }
  /// When every wait is a hang, unless there is progress before.
  Clock::time_point deadline() const { return progress + duration(options.timeout_seconds); }
  /// Waits until `changed` or `end`, or less, to poll.
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Clock::time_point end) const;
  /// Sleeps until `seconds` are over or a rank has failed.
  void pause(double seconds);
  /// Whether no rank has failed. Polls.
  bool goes_on();
  /// `rank 1, which waits in barrier 2 of axis tp (purpose x)`.
  std::string describe(Rank rank) const;
};

/// The place where the members of a group meet. An error ends it for good: no member can know what others have done.
class Board {
 public:
  Board(ThreadState& threads, const BoardKey& key)
      : state(threads),
        axis(std::get<0>(key)),
        members(std::get<1>(key)),
        channel(std::get<2>(key)),
        taken(members.size()) {}
  virtual ~Board() = default;

  ThreadState& state;
  const std::string axis;
  const std::vector<Rank> members;
  const std::string channel;
  std::vector<bool> taken;  // which members' ends exist
  std::condition_variable changed;

  std::string name_at(std::int64_t place) const { return name_of(members[static_cast<std::size_t>(place)]); }
  bool stopped() const { return !broken_.empty() || state.failed; }
  /// Throws if stopped().
  void check(std::int64_t place, const Call& call) const;
  /// Ends the board with this sentence, if nothing has done so before.
  void stop(Ending ending, std::string why);
  /// Ends the board because this member leaves a call halfway, by an error of its own.
  void abandon(std::int64_t place) { stop(Ending::abandoned, name_at(place) + " stopped in the middle of the call"); }
  /// Blocks until done(), or throws: the board is stopped, a member k with missing(k) lives no more, or the deadline is
  /// over.
  template <class Done, class Missing>
  void await(std::unique_lock<std::mutex>& lock, std::int64_t place, const Call& call, Done done, Missing missing);

 private:
  struct Registered : Waiting {  // while the lock is held at both ends
    Registered(ThreadState& ranks, const Waiting& waiting) : Waiting(waiting), state(ranks) {
      state.waits.push_back(this);
    }
    ~Registered() { std::erase(state.waits, this); }
    ThreadState& state;
  };
  void time_out(std::int64_t place, const std::vector<std::int64_t>& missing);

  std::string broken_;  // why the board has ended; empty while it has not
  Ending ending_ = Ending::error;
  std::int64_t order_ = 0;
};

template <class Done, class Missing>
void Board::await(std::unique_lock<std::mutex>& lock, std::int64_t place, const Call& call, Done done,
                  Missing missing) {
  if (done()) return;
  const Registered waiting(state, {members[static_cast<std::size_t>(place)], this, &call});
  while (!done()) {
    check(place, call);
    const bool late = ThreadState::Clock::now() >= state.deadline();
    std::vector<std::int64_t> absent;
    for (std::int64_t k = 0; k < std::ssize(members); ++k) {
      if (!missing(k)) continue;
      const auto rank = members[static_cast<std::size_t>(k)];
      if (state.life[static_cast<std::size_t>(rank)] != Life::running) stop(Ending::lost, state.describe(rank));
      if (late) absent.push_back(k);
    }
    if (late && !stopped()) time_out(place, absent);
    check(place, call);
    state.wait(lock, changed, state.deadline());
  }
}

}  // namespace shardproof::comm
