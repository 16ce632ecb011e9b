// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/rank_threads.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <tuple>

#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/non_finite.hpp"

namespace shardproof::comm {

namespace {

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
  } catch (const JobFailed&) {  // another process's, whose words name its rank
    throw;
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

}  // namespace

void require_legal(std::int64_t threads, const ThreadsOptions& options) {
  std::string findings;
  const auto require = [&](bool ok, const std::string& finding) {
    if (!ok) findings += (findings.empty() ? "" : "\n") + finding;
  };
  require(threads >= 1, "ranks " + std::to_string(threads) + ": at least 1");
  require(threads <= most_thread_ranks, "ranks " + std::to_string(threads) + ": threads carry at most " +
                                            std::to_string(most_thread_ranks) + "; mpirun starts ranks as processes");
  require(options.timeout_seconds > 0 && options.timeout_seconds <= most_timeout_seconds,
          "timeout: above 0 and at most 1e6 seconds");
  require(options.chunk_elements >= 1, "chunk_elements " + std::to_string(options.chunk_elements) + ": at least 1");
  require(options.send_depth >= 0, "send_depth " + std::to_string(options.send_depth) + ": at least 0");
  if (!findings.empty()) throw BadInput(findings);
}

void run_ranks(ThreadState& state, Rank first, std::int64_t count, const std::function<void(Rank)>& body) {
  std::vector<Failure> failures;
  const auto guarded = [&](Rank self) {
    auto end = Life::failed;
    try {
      body(self);
      end = Life::ended;
    } catch (...) {
      const std::lock_guard lock(state.mutex);
      failures.push_back(failure_of(self, state.failures++));
    }
    state.leave(self, end);
  };
  const auto rank_at = [first](std::int64_t k) { return static_cast<Rank>(static_cast<std::int64_t>(first) + k); };
  std::vector<std::thread> threads;
  std::exception_ptr unstarted;
  try {
    for (std::int64_t k = 0; k < count; ++k) threads.emplace_back(guarded, rank_at(k));
  } catch (...) {
    unstarted = std::current_exception();
    for (std::int64_t k = std::ssize(threads); k < count; ++k) state.leave(rank_at(k), Life::failed);
  }
  for (auto& thread : threads) thread.join();
  if (unstarted) std::rethrow_exception(unstarted);
  if (failures.empty()) return;
  const auto& explains = cause(failures);
  rethrow_named(explains.rank, explains.error);
}

}  // namespace shardproof::comm
