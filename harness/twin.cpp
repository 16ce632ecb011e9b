// SPDX-License-Identifier: Apache-2.0
#include "harness/twin.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

namespace {

double tokens_per_second(const TrainingJob& job, const Trained& trained) {
  double tokens = 0, seconds = 0;
  for (auto k = static_cast<std::size_t>(steps_of_a_turn(job.strategy.replicas)); k < trained.steps.size(); ++k) {
    tokens += static_cast<double>(trained.steps[k].tokens);
    seconds += trained.seconds[k];
  }
  return tokens / seconds;
}

/// All at once.
double twins(const TrainingJob& twin, std::int64_t count, const workload::Corpus& corpus) {
  std::vector<double> speeds(static_cast<std::size_t>(count));
  std::exception_ptr error;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (auto& speed : speeds) {
      threads.emplace_back([&] {
        try {
          speed = tokens_per_second(twin, train(twin, corpus, {}));
        } catch (...) {
          const std::lock_guard lock(mutex);
          error = std::current_exception();
        }
      });
    }
  }
  if (error) std::rethrow_exception(error);
  return std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

}  // namespace

RatioInterval median_ratio(std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const auto n = ratios.size();
  const double median = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2;
  // The true median lies below the k-th smallest with probability P(B(n, 1/2) < k).
  double outside = 0, binomial = 1;
  for (std::size_t i = 0; i < n; ++i) binomial /= 2;
  std::size_t k = 0;
  for (; k < n / 2; ++k) {
    outside += binomial;
    if (2 * outside > 0.05) break;
    binomial *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  const std::size_t first = k > 0 ? k - 1 : 0;
  return {ratios[first], median, ratios[n - 1 - first]};
}

TrainingJob twin_of(const TrainingJob& job) {
  const std::int64_t batch = job.workload.batch, dp = job.strategy.dp;
  if (batch % dp != 0)
    throw NotSupported(
        fmt::format("a batch of {} is not cut evenly by dp{}: its twin has no whole number of samples; --set batch={} "
                    "has one",
                    batch, dp, (batch / dp + 1) * dp));
  TrainingJob twin = job;
  twin.workload.batch /= job.strategy.dp;
  const plan::Strategy one_rank;
  auto& s = twin.strategy;  // what says how one rank computes stays
  s.dp = s.pp = s.tp = 1;
  s.order = one_rank.order, s.schedule = one_rank.schedule, s.chunks = one_rank.chunks, s.layers = one_rank.layers,
  s.vertical_sync = one_rank.vertical_sync, s.replicas = one_rank.replicas, s.boundary = one_rank.boundary,
  s.sync = one_rank.sync;
  return twin;
}

std::vector<TwinRound> against_twin(const TrainingJob& job, const workload::Corpus& corpus, std::int64_t rounds,
                                    std::int64_t steps, const std::function<void(std::int64_t)>& on_round) {
  TrainingJob run = job, twin = twin_of(job);
  const std::int64_t turn = steps_of_a_turn(job.strategy.replicas);
  run.workload.steps = twin.workload.steps =
      std::max((steps + turn - 1) / turn, std::min<std::int64_t>(turn, 2)) * turn;
  std::vector<TwinRound> result;
  on_round(0);
  for (std::int64_t r = 0; r < rounds; ++r) {
    result.push_back({tokens_per_second(run, train(run, corpus, {})), twins(twin, job.strategy.ranks(), corpus)});
    on_round(r + 1);
  }
  return result;
}

}  // namespace shardproof::harness
