// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/poison.hpp"
#include "kernels/core/testing/bench.hpp"
#include "kernels/norms/norms.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t elements = 16384;

void sum_of_squares(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto x = bench.tensor({elements});
  const WideTotal total(bench.queue, dtype, "total");
  bench.run(elements, [&] { norms::sum_of_squares(bench.queue, x, total); });
}
BENCHMARK_CAPTURE(sum_of_squares, exact, Dtype::fixed);
BENCHMARK_CAPTURE(sum_of_squares, f64, Dtype::f64);
BENCHMARK_CAPTURE(sum_of_squares, f32, Dtype::f32);

void magnitude_scan(benchmark::State& state) {
  testing::Bench bench(state, Dtype::fixed);
  const auto x = bench.tensor({elements});
  bench.queue.submit("magnitude_scan", [&](KernelScope& scope) {
    const auto* const data = scope.read<Fixed>(x);
    bench.run(elements, [&] { benchmark::DoNotOptimize(poison::find_out_of_range(data, elements)); });
  });
}
BENCHMARK(magnitude_scan);

}  // namespace
}  // namespace shardproof
