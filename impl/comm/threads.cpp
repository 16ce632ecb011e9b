// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "impl/comm/inject.hpp"
#include "impl/comm/rank_threads.hpp"
#include "impl/comm/thread_channel.hpp"

namespace shardproof::comm {

Communicator World::all(std::string channel) {
  std::vector<Rank> members;
  for (std::int64_t k = 0; k < size(); ++k) members.push_back(static_cast<Rank>(k));
  return communicator("world", std::move(members), std::move(channel));
}

namespace {

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadState& state, Rank rank, const std::vector<Injection>& injections)
      : state_(state),
        rank_(rank),
        injector_(
            injections, rank, [&state](double seconds) { state.pause(seconds); },
            [&state] { return state.goes_on(); }) {}

  Rank rank() const override { return rank_; }
  std::int64_t size() const override { return std::ssize(state_.life); }
  TrafficLedger& traffic() override { return traffic_; }
  std::unique_ptr<Queue> queue(Device& device) override { return injector_.queue(device); }
  const Injector& injector() const { return injector_; }

  Communicator communicator(std::string axis, std::vector<Rank> members, std::string channel) override {
    Group group = group_of(std::move(axis), std::move(members), std::move(channel), rank_, size());
    auto& board = meet(state_, {std::move(group.axis), std::move(group.members), std::move(group.channel)});
    return Communicator(injector_.wrap(std::make_unique<ThreadChannel>(board, group.place, traffic_)));
  }

 private:
  ThreadState& state_;
  const Rank rank_;
  TrafficLedger traffic_;
  Injector injector_;
};

/// Throws CommError for a message that nobody has received.
void require_delivered(const ThreadState& state) {
  for (const auto& [key, board] : state.boards) {
    const auto text = static_cast<const ThreadBoard&>(*board).mailbox.undelivered();
    if (!text.empty()) throw CommError(text);
  }
}

}  // namespace

void run_threads(std::int64_t ranks, const ThreadsOptions& options, const std::function<void(World&)>& rank) {
  require_legal(ranks, options);
  const auto injections = parse_injections(options.injections, ranks);
  ThreadState state(ranks, options);
  std::vector<std::int64_t> hits(injections.size());
  run_ranks(state, Rank{0}, ranks, [&](Rank self) {
    ThreadWorld world(state, self, injections);
    rank(world);
    const std::lock_guard lock(state.mutex);
    for (std::size_t i = 0; i < hits.size(); ++i) hits[i] += world.injector().hits(i);
  });
  require_delivered(state);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == 0) throw NoCallMatched(injections[i]);
  }
}

}  // namespace shardproof::comm
