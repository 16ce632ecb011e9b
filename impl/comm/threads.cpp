// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "impl/comm/inject.hpp"
#include "impl/comm/thread_channel.hpp"
#include "kernels/core/non_finite.hpp"

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
    auto& board = meet({std::move(group.axis), std::move(group.members), std::move(group.channel)});
    return Communicator(injector_.wrap(std::make_unique<ThreadChannel>(board, group.place, traffic_)));
  }

 private:
  ThreadBoard& meet(const BoardKey& key) {
    const std::lock_guard lock(state_.mutex);
    auto& board = state_.boards[key];
    if (!board) board = std::make_unique<ThreadBoard>(state_, key);
    return static_cast<ThreadBoard&>(*board);
  }

  ThreadState& state_;
  const Rank rank_;
  TrafficLedger traffic_;
  Injector injector_;
};

void require_legal(std::int64_t ranks, const ThreadsOptions& options) {
  std::string findings;
  const auto require = [&](bool ok, const std::string& finding) {
    if (!ok) findings += (findings.empty() ? "" : "\n") + finding;
  };
  require(ranks >= 1, "ranks " + std::to_string(ranks) + ": at least 1");
  require(ranks <= most_thread_ranks, "ranks " + std::to_string(ranks) + ": threads carry at most " +
                                          std::to_string(most_thread_ranks) + "; mpirun starts ranks as processes");
  require(options.timeout_seconds > 0 && options.timeout_seconds <= most_timeout_seconds,
          "timeout: above 0 and at most 1e6 seconds");
  require(options.chunk_elements >= 1, "chunk_elements " + std::to_string(options.chunk_elements) + ": at least 1");
  require(options.send_depth >= 0, "send_depth " + std::to_string(options.send_depth) + ": at least 0");
  if (!findings.empty()) throw BadInput(findings);
}

/// Throws the error again as the first of these types that it is (derived ones come first).
template <class... Types>
[[noreturn]] void throw_named(Rank rank, const std::exception& error) {
  const std::string prefix = name_of(rank) + ": ", text = error.what();
  const std::string named = text.starts_with(prefix) ? text : prefix + text;
  (..., (dynamic_cast<const Types*>(&error) != nullptr ? throw Types(named) : void()));
  throw Error(named);
}

[[noreturn]] void rethrow_named(Rank rank, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    throw_named<NonFinite, OutOfMemory, DeviceError, BadInput, NotSupported, NotBuilt, HangError, RankLost, CommError,
                WriteError, InternalError>(rank, e);
  }
}

/// An error of a rank's own explains those of communication, an abandoned call explains nothing.
enum class Class : std::uint8_t { own, communication, abandoned };

struct Failure {
  Class what;
  std::int64_t order;  // of time; of one board's end the same for all members
  Rank rank;
  std::exception_ptr error;
};

/// The first in time of those that explain most, by the lowest rank that tells of it.
const Failure& cause(const std::vector<Failure>& failures) {
  return *std::ranges::min_element(failures, {}, [](const Failure& f) { return std::tuple(f.what, f.order, f.rank); });
}

/// The error that is being caught.
Failure failure_of(Rank rank, std::int64_t now) {
  Failure failure{Class::own, now, rank, std::current_exception()};
  try {
    throw;
  } catch (const Abandoned&) {
    failure.what = Class::abandoned;
  } catch (const CommError& error) {
    failure.what = Class::communication;
    if (const auto* end = dynamic_cast<const BoardEnd*>(&error)) failure.order = end->order;
  } catch (...) {
  }
  return failure;
}

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
  std::vector<Failure> failures;
  std::vector<std::int64_t> hits(injections.size());
  const auto body = [&](Rank self) {
    ThreadWorld world(state, self, injections);
    auto end = Life::failed;
    try {
      rank(world);
      end = Life::ended;
    } catch (...) {
      const std::lock_guard lock(state.mutex);
      failures.push_back(failure_of(self, state.failures++));
    }
    {
      const std::lock_guard lock(state.mutex);
      for (std::size_t i = 0; i < hits.size(); ++i) hits[i] += world.injector().hits(i);
    }
    state.leave(self, end);
  };
  std::vector<std::thread> threads;
  std::exception_ptr unstarted;
  try {
    for (std::int64_t k = 0; k < ranks; ++k) threads.emplace_back(body, static_cast<Rank>(k));
  } catch (...) {
    unstarted = std::current_exception();
    for (std::int64_t k = std::ssize(threads); k < ranks; ++k) state.leave(static_cast<Rank>(k), Life::failed);
  }
  for (auto& thread : threads) thread.join();
  if (unstarted) std::rethrow_exception(unstarted);
  if (!failures.empty()) {
    const auto& first = cause(failures);
    rethrow_named(first.rank, first.error);
  }
  require_delivered(state);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == 0) throw NoCallMatched(injections[i]);
  }
}

}  // namespace shardproof::comm
