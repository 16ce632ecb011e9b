// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/board.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace shardproof::comm {

std::string name_of(Rank rank) { return "rank " + std::to_string(static_cast<std::int32_t>(rank)); }

Group group_of(std::string axis, std::vector<Rank> members, std::string channel, Rank self, std::int64_t world_size) {
  for (const auto member : members) {
    const auto index = static_cast<std::int64_t>(member);
    if (index < 0 || index >= world_size)
      throw InternalError("axis " + axis + ": no " + name_of(member) + " in this world");
  }
  if (std::set(members.begin(), members.end()).size() != members.size())
    throw InternalError("axis " + axis + ": a rank twice in a group");
  const auto own = std::ranges::find(members, self);
  if (own == members.end()) throw InternalError("axis " + axis + ": " + name_of(self) + " is not in its own group");
  const auto place = own - members.begin();
  return {std::move(axis), std::move(channel), std::move(members), place};
}

namespace {

std::string describe(const Board& board, const Call& call) {
  return std::string(name_of(call.kind)) + " " + std::to_string(call.number) + " of axis " + board.axis + ", channel " +
         board.channel + " (purpose " + std::string(call.purpose) + print(call.tag) + ")";
}

}  // namespace

ThreadState::ThreadState(std::int64_t ranks, const ThreadsOptions& threads_options)
    : options(threads_options), life(static_cast<std::size_t>(ranks), Life::running) {}

void ThreadState::leave(Rank rank, Life how) {
  const std::lock_guard lock(mutex);
  life[static_cast<std::size_t>(rank)] = how;
  if (how == Life::failed && !failed) failed = rank;
  note_progress();
  for (const auto& [key, board] : boards) board->changed.notify_all();
  failure.notify_all();
}

void ThreadState::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                       Clock::time_point end) const {
  if (options.poll) {
    options.poll();
    end = std::min(end, Clock::now() + std::chrono::milliseconds(200));
  }
  changed.wait_until(lock, end);
}

void ThreadState::pause(double seconds) {
  std::unique_lock lock(mutex);
  const auto end = Clock::now() + duration(seconds);
  while (!failed && Clock::now() < end) wait(lock, failure, end);
}

bool ThreadState::goes_on() {
  const std::lock_guard lock(mutex);
  if (options.poll) options.poll();
  return !failed;
}

std::string ThreadState::describe(Rank rank) const {
  switch (life[static_cast<std::size_t>(rank)]) {
    case Life::ended: return name_of(rank) + " has ended";
    case Life::failed: return name_of(rank) + " has failed";
    case Life::running: break;
  }
  std::string text;
  for (const auto* wait : waits) {
    if (wait->rank != rank) continue;
    text += (text.empty() ? ", which waits in " : " and in ") + comm::describe(*wait->board, *wait->call);
  }
  return name_of(rank) + (text.empty() ? ", which waits in no call" : text);
}

void Board::check(std::int64_t place, const Call& call) const {
  if (!stopped()) return;
  const auto where = name_at(place) + ": " + describe(*this, call) + ": ";
  if (!broken_.empty()) {
    switch (ending_) {
      case Ending::error: throw Ended<CommError>(where + broken_, order_);
      case Ending::hang: throw Ended<HangError>(where + broken_, order_);
      case Ending::lost: throw Ended<RankLost>(where + broken_, order_);
      case Ending::abandoned: throw Ended<Abandoned>(where + broken_, order_);
    }
  }
  throw Abandoned(where + state.describe(*state.failed));
}

void Board::stop(Ending ending, std::string why) {
  if (broken_.empty()) {
    broken_ = std::move(why);
    ending_ = ending;
    order_ = state.failures++;
  }
  changed.notify_all();
}

void Board::time_out(std::int64_t place, const std::vector<std::int64_t>& missing) {
  std::ostringstream text;
  text << "no rank began or ended a call for " << state.options.timeout_seconds << " s while " << name_at(place)
       << " waited for ";
  for (std::size_t i = 0; i < missing.size(); ++i) {
    text << (i == 0 ? "" : "; ") << state.describe(members[static_cast<std::size_t>(missing[i])]);
  }
  stop(Ending::hang, text.str());
}

}  // namespace shardproof::comm
