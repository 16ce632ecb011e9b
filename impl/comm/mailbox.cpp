// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mailbox.hpp"

#include <algorithm>
#include <new>

namespace shardproof::comm {

void Mailbox::open(std::int64_t place) {
  const auto next = openings_[static_cast<std::size_t>(place)] + 1;
  for (const auto& [ends, box] : boxes_) {
    if (ends.second != place) continue;
    // A sender that has opened its next end already may be ahead.
    const auto old = std::ranges::find_if(box, [&](const Message& message) { return message.opening < next; });
    if (old != box.end()) throw CommError(lost(ends, *old) + " before it opened the channel again");
  }
  openings_[static_cast<std::size_t>(place)] = next;
}

void Mailbox::send(std::int64_t place, const Call& call, Message message, std::int64_t depth) {
  std::unique_lock lock(board_.state.mutex);
  board_.check(place, call);
  board_.state.note_progress();
  message.opening = openings_[static_cast<std::size_t>(place)];
  auto& box = boxes_[{place, call.peer}];
  box.push_back(std::move(message));
  board_.changed.notify_all();
  board_.await(
      lock, place, call, [&] { return std::ssize(box) <= depth; }, [&](std::int64_t k) { return k == call.peer; });
}

void Mailbox::receive(std::int64_t place, const Call& call, const std::function<void(const Message&)>& take) {
  std::unique_lock lock(board_.state.mutex);
  board_.check(place, call);
  board_.state.note_progress();
  auto& box = boxes_[{call.peer, place}];
  board_.await(
      lock, place, call, [&] { return !box.empty() && !box.front().busy; },
      [&](std::int64_t k) { return k == call.peer; });
  auto& message = box.front();
  if (auto why = foreign(place, call, message); !why.empty()) {
    board_.stop(Ending::error, std::move(why));
    board_.check(place, call);
  }
  message.busy = true;
  lock.unlock();
  try {
    take(message);
  } catch (...) {
    lock.lock();
    message.busy = false;
    board_.abandon(place);
    throw;
  }
  message.tensor = Tensor();  // before the sender can go
  lock.lock();
  box.pop_front();
  board_.state.note_progress();
  board_.changed.notify_all();
}

void Mailbox::detach(std::int64_t place) noexcept {
  std::unique_lock lock(board_.state.mutex);
  for (auto& [ends, box] : boxes_) {
    if (ends.first != place) continue;
    for (;;) {
      board_.changed.wait(lock, [&box = box] { return std::ranges::none_of(box, &Message::busy); });
      if (board_.stopped()) box.clear();
      const auto lent = std::ranges::find_if(box, [](const Message& message) { return bool(message.tensor); });
      if (lent == box.end()) break;
      auto& message = *lent;
      message.busy = true;
      lock.unlock();
      bool kept = true;
      try {
        message.copied.assign(message.data, message.data + message.tensor.bytes());
      } catch (const std::bad_alloc&) {
        kept = false;
      }
      message.data = message.copied.data();
      message.tensor = Tensor();
      lock.lock();
      message.busy = false;
      if (!kept) board_.stop(Ending::error, lost(ends, message) + ": no memory to keep it after its sender");
      board_.changed.notify_all();
    }
  }
}

std::string Mailbox::undelivered() const {
  std::int64_t others = -1;
  std::string text;
  for (const auto& [ends, box] : boxes_) {
    others += std::ssize(box);
    if (text.empty() && !box.empty()) text = lost(ends, box.front());
  }
  if (others > 0) text += ", nor were " + std::to_string(others) + " other messages of the channel";
  return text;
}

std::string Mailbox::lost(const Ends& ends, const Message& message) const {
  return board_.name_at(ends.first) + "'s " + print(message.signature) + ", axis " + board_.axis + ", channel " +
         board_.channel + ": " + board_.name_at(ends.second) + " did not receive it";
}

std::string Mailbox::foreign(std::int64_t place, const Call& call, const Message& message) const {
  const auto rank_at = [&](std::int64_t k) { return board_.members[static_cast<std::size_t>(k)]; };
  auto why = mismatch(rank_at(call.peer), message.signature, rank_at(place), Signature(call));
  const auto opening = openings_[static_cast<std::size_t>(place)];
  if (why.empty() && message.opening != opening) {
    why = board_.name_at(call.peer) + " sent it from its opening " + std::to_string(message.opening) +
          " of the channel, " + board_.name_at(place) + " receives in its opening " + std::to_string(opening);
  }
  return why;
}

}  // namespace shardproof::comm
