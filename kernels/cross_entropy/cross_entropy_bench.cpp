// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernels/core/testing/bench.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cross_entropy/cross_entropy_row.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t rows = 64, vocab = 256;

void cross_entropy_forward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto z = bench.tensor({rows, vocab}, -6, 6), top = bench.tensor({rows}), sum = bench.tensor({rows});
  const auto labels = testing::make(bench.queue, "labels", {rows}, std::vector<double>(rows, 7.0), Dtype::i32);
  const WideTotal loss(bench.queue, dtype, "loss");
  bench.run(rows * vocab, [&] { cross_entropy::forward(bench.queue, z, labels, 0, top, sum, loss); });
}
BENCHMARK_CAPTURE(cross_entropy_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(cross_entropy_forward, f64, Dtype::f64);
BENCHMARK_CAPTURE(cross_entropy_forward, f32, Dtype::f32);

void cross_entropy_backward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto z = bench.tensor({rows, vocab}, -6, 6), top = bench.tensor({rows}), sum = bench.tensor({rows});
  const auto labels = testing::make(bench.queue, "labels", {rows}, std::vector<double>(rows, 7.0), Dtype::i32);
  const WideTotal loss(bench.queue, dtype, "loss");
  cross_entropy::forward(bench.queue, z, labels, 0, top, sum, loss);
  const auto dz = bench.tensor({rows, vocab});
  bench.run(rows * vocab, [&] { cross_entropy::backward(bench.queue, z, labels, top, sum, 0, 1, dz); });
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
