// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernels/core/testing/bench.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cross_entropy/cross_entropy_row.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t rows = 64, vocab = 256;

/// What one device calls, on its tensors.
struct Step {
  Step(testing::Bench& bench, double smoothing_)
      : queue(bench.queue),
        smoothing(smoothing_),
        logits(bench.tensor({rows, vocab}, -6, 6)),
        labels(testing::make(queue, "labels", {rows}, std::vector<double>(rows, 7.0), Dtype::i32)),
        row_max(bench.tensor({rows})),
        row_sum(bench.tensor({rows})),
        target(bench.tensor({rows})),
        dlogits(bench.tensor({rows, vocab})),
        total(queue, logits.dtype(), "loss") {
    if (smoothing > 0) logit_sum = {queue, {"logit_sum", logits.dtype(), {rows}, Category::workspace}};
  }

  void forward() {
    if (logit_sum) logit_sum.restart(queue);
    cross_entropy::row_max(queue, logits, row_max);
    cross_entropy::row_sums(queue, logits, labels, {0, vocab}, row_max, row_sum, target, logit_sum);
    cross_entropy::loss(queue, labels, row_max, row_sum, target, logit_sum ? logit_sum.finish(queue) : Tensor(),
                        smoothing, vocab, total);
  }
  void backward() {
    cross_entropy::backward(queue, logits, labels, {0, vocab}, row_max, row_sum, smoothing, 1, dlogits);
  }

  Queue& queue;
  double smoothing;
  Tensor logits, labels, row_max, row_sum, target, dlogits;
  Accumulator logit_sum;
  WideTotal total;
};

void cross_entropy_forward(benchmark::State& state, Dtype dtype, double smoothing = 0) {
  testing::Bench bench(state, dtype);
  Step step(bench, smoothing);
  bench.run(rows * vocab, [&] { step.forward(); });
}
BENCHMARK_CAPTURE(cross_entropy_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(cross_entropy_forward, exact_smoothed, Dtype::fixed, 0.1);
BENCHMARK_CAPTURE(cross_entropy_forward, f64, Dtype::f64);
BENCHMARK_CAPTURE(cross_entropy_forward, f32, Dtype::f32);

void cross_entropy_backward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  Step step(bench, 0);
  step.forward();
  bench.run(rows * vocab, [&] { step.backward(); });
}
BENCHMARK_CAPTURE(cross_entropy_backward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(cross_entropy_backward, f64, Dtype::f64);
BENCHMARK_CAPTURE(cross_entropy_backward, f32, Dtype::f32);

// The two functions that bound every softmax of the exact track, alone.
void exponential_exact(benchmark::State& state) {
  testing::Bench bench(state, Dtype::fixed);
  const auto x = bench.tensor({rows * vocab}, -6, 0), y = bench.tensor({rows * vocab});
  bench.queue.submit("exponential", [&](KernelScope& scope) {
    const auto* const from = scope.read<Fixed>(x);
    auto* const to = scope.write<Fixed>(y);
    bench.run(rows * vocab, [&] {
      HostTeam<32>{}.each(rows * vocab, [=](std::int64_t i) { to[i] = cross_entropy::exponential(from[i], Fixed{0}); });
    });
  });
}
BENCHMARK(exponential_exact);

void divide_exact(benchmark::State& state) {
  testing::Bench bench(state, Dtype::fixed);
  const auto x = bench.tensor({rows * vocab}, 0, 1), y = bench.tensor({rows * vocab});
  bench.queue.submit("divide", [&](KernelScope& scope) {
    const auto* const from = scope.read<Fixed>(x);
    auto* const to = scope.write<Fixed>(y);
    const double divisor = real(from[0]) + 3;
    bench.run(rows * vocab, [&] {
      HostTeam<32>{}.each(rows * vocab, [=](std::int64_t i) { to[i] = round_to<Fixed>(real(from[i]) / divisor); });
    });
  });
}
BENCHMARK(divide_exact);

}  // namespace
}  // namespace shardproof
