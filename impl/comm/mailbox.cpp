// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mailbox.hpp"

namespace shardproof::comm {

void Mailbox::send(std::int64_t place, const Call& call, Message message, std::int64_t depth) {
  std::unique_lock lock(board_.state.mutex);
  board_.check(place, call);
  auto& box = boxes_[{place, call.peer}];
  box.push_back(std::move(message));
  board_.changed.notify_all();
  board_.await(
      lock, place, call, [&] { return std::ssize(box) <= depth; }, [&](std::int64_t k) { return k == call.peer; });
}

void Mailbox::receive(std::int64_t place, const Call& call, const std::function<void(const Message&)>& take) {
  std::unique_lock lock(board_.state.mutex);
  board_.check(place, call);
  auto& box = boxes_[{call.peer, place}];
  board_.await(
      lock, place, call, [&] { return !box.empty(); }, [&](std::int64_t k) { return k == call.peer; });
  auto& message = box.front();
  const auto rank_at = [&](std::int64_t k) { return board_.members[static_cast<std::size_t>(k)]; };
  if (auto why = mismatch(rank_at(call.peer), message.signature, rank_at(place), Signature(call)); !why.empty()) {
    board_.stop(Ending::error, std::move(why));
    board_.check(place, call);
  }
  message.moving = true;
  lock.unlock();
  take(message);
  message.tensor = Tensor();  // before the sender can go
  lock.lock();
  box.pop_front();
  board_.changed.notify_all();
}

void Mailbox::detach(std::int64_t place) {
  std::unique_lock lock(board_.state.mutex);
  for (auto& [ends, box] : boxes_) {
    if (ends.first != place) continue;
    board_.changed.wait(lock, [&] { return box.empty() || !box.front().moving; });
    if (board_.stopped()) box.clear();
    for (auto& message : box) {
      if (!message.tensor) continue;
      message.copied.assign(message.data, message.data + message.tensor.bytes());
      message.data = message.copied.data();
      message.tensor = Tensor();
    }
  }
}

}  // namespace shardproof::comm
