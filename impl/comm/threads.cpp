// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "impl/comm/inject.hpp"
#include "impl/comm/thread_channel.hpp"

namespace shardproof::comm {

Communicator World::all(std::string channel) {
  std::vector<Rank> members;
  for (std::int64_t k = 0; k < size(); ++k) members.push_back(static_cast<Rank>(k));
  return communicator("world", std::move(members), std::move(channel));
}

namespace {

std::string name(Rank rank) { return "rank " + std::to_string(static_cast<std::int32_t>(rank)); }

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadState& state, Rank rank, const std::vector<Injection>& injections)
      : state_(state), rank_(rank), injector_(injections, rank) {}

  Rank rank() const override { return rank_; }
  std::int64_t size() const override { return std::ssize(state_.life); }
  TrafficLedger& traffic() override { return traffic_; }
  const Injector& injector() const { return injector_; }

  Communicator communicator(std::string axis, std::vector<Rank> members, std::string channel) override {
    for (const auto member : members) {
      const auto index = static_cast<std::int64_t>(member);
      if (index < 0 || index >= size()) throw InternalError("axis " + axis + ": no " + name(member) + " in this world");
    }
    if (std::set(members.begin(), members.end()).size() != members.size()) {
      throw InternalError("axis " + axis + ": a rank twice in a group");
    }
    const auto self = std::ranges::find(members, rank_);
    if (self == members.end()) throw InternalError("axis " + axis + ": " + name(rank_) + " is not in its own group");
    const auto place = self - members.begin();
    auto& board = meet({std::move(axis), std::move(members), std::move(channel)});
    return Communicator(injector_.wrap(std::make_unique<ThreadChannel>(board, place, traffic_)));
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
                                          std::to_string(most_thread_ranks) + "; start more with mpirun");
  require(options.timeout_seconds > 0 && options.timeout_seconds <= 1e6, "timeout: above 0 and at most 1e6 seconds");
  require(options.chunk_elements >= 1, "chunk_elements " + std::to_string(options.chunk_elements) + ": at least 1");
  require(options.send_depth >= 0, "send_depth " + std::to_string(options.send_depth) + ": at least 0");
  if (!findings.empty()) throw BadInput(findings);
}

/// Throws the error again as the first of these types that it is (derived ones come first).
template <class... Types>
[[noreturn]] void throw_named(Rank rank, const std::exception& error) {
  const std::string prefix = name(rank) + ": ", text = error.what();
  const std::string named = text.starts_with(prefix) ? text : prefix + text;
  (..., (dynamic_cast<const Types*>(&error) != nullptr ? throw Types(named) : void()));
  throw Error(named);
}

[[noreturn]] void rethrow_named(Rank rank, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    throw_named<OutOfMemory, DeviceError, BadInput, NotSupported, NotBuilt, HangError, RankLost, CommError, WriteError,
                InternalError>(rank, e);
  }
}

struct Failure {
  Rank rank;
  std::exception_ptr error;
  bool communication;
};

/// In the order of time: the first, but of several ends of one failed call always that of the lowest rank.
const Failure& cause(const std::vector<Failure>& failures) {
  if (!failures.front().communication) return failures.front();
  const auto key = [](const Failure& f) { return std::pair(!f.communication, f.rank); };
  return *std::ranges::min_element(failures, {}, key);
}

}  // namespace

void run_threads(std::int64_t ranks, const ThreadsOptions& options, const std::function<void(World&)>& rank) {
  require_legal(ranks, options);
  const auto injections = parse_injections(options.injections, ranks);
  ThreadState state(ranks, options);
  std::mutex mutex;
  std::vector<Failure> failures;
  std::vector<std::int64_t> hits(injections.size());
  const auto body = [&](Rank self) {
    ThreadWorld world(state, self, injections);
    auto end = Life::failed;
    try {
      rank(world);
      end = Life::ended;
    } catch (const Abandoned&) {
    } catch (const CommError&) {
      const std::lock_guard lock(mutex);
      failures.push_back({self, std::current_exception(), true});
    } catch (...) {
      const std::lock_guard lock(mutex);
      failures.push_back({self, std::current_exception(), false});
    }
    {
      const std::lock_guard lock(mutex);
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
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == 0) throw BadInput("--inject " + to_text(injections[i]) + ": no call matched");
  }
}

}  // namespace shardproof::comm
