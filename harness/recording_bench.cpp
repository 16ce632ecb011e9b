// SPDX-License-Identifier: Apache-2.0
// bench_recording: what it costs to record spans. Of one span, and of a step of `laptop`: as spans times the cost of
// one, and on the clock, from steps with and without in turn.
#include <algorithm>
#include <chrono>
#include <vector>

#include <benchmark/benchmark.h>

#include "harness/figures.hpp"
#include "harness/training.hpp"
#include "harness/twin.hpp"

namespace shardproof::harness {
namespace {

/// Seconds of one span, clocks and memory.
double seconds_of_a_span() {
  constexpr int spans = 100'000;
  double best = 1;
  for (int k = 0; k < 10; ++k) {
    SpanLog log;
    log.turn(true);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < spans; ++i) const Recorded recorded(log, KernelSpan{{}, "kernel"});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / spans);
  }
  return best;
}

void recorded_laptop(benchmark::State& state) {
  constexpr std::int64_t pairs = 9, steps = 4;  // the first is not counted
  TrainingJob job{.workload = workload::load("laptop"), .strategy = {.attention = "tiled"}};
  job.workload.steps = steps;
  const workload::Corpus corpus(job.workload);
  const double span = seconds_of_a_span();
  std::vector<double> ratios, share;
  const auto train_once = [&](bool record) {
    job.record_spans = record;
    Trained trained = train(job, corpus, {});
    trained.seconds.erase(trained.seconds.begin());
    const double step = quartiles(trained.seconds)[1];
    if (record) {
      const auto& spans = trained.spans.at(0);
      const auto count = spans.kernels.size() + spans.exchanges.size() + spans.actions.size() + spans.steps.size();
      share.push_back(static_cast<double>(count) / (steps - 1) * span / step);
    }
    return step;
  };
  for (auto _ : state) {
    for (std::int64_t k = 0; k < pairs; ++k) {
      const bool first = k % 2 == 0;
      const double one = train_once(first), other = train_once(!first);
      ratios.push_back(first ? one / other : other / one);
    }
  }
  const auto interval = median_ratio(ratios);
  state.counters["ns_a_span"] = 1e9 * span;
  state.counters["spans_%"] = 100 * quartiles(share)[1];
  state.counters["clock_low_%"] = 100 * (interval.low - 1);
  state.counters["clock_median_%"] = 100 * (interval.median - 1);
  state.counters["clock_high_%"] = 100 * (interval.high - 1);
}
BENCHMARK(recorded_laptop)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace shardproof::harness
