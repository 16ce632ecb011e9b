// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/testing/bench.hpp"
#include "kernels/optimizers/optimizers.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t elements = 16384;

Dtype state_of(Dtype dtype) { return dtype == Dtype::f32 ? Dtype::f32 : Dtype::f64; }

void sgd(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto p = bench.tensor({elements}), g = bench.tensor({elements});
  bench.run(elements, [&] { optimizers::sgd(bench.queue, p, g, {}, 1e-6); });
}
BENCHMARK_CAPTURE(sgd, exact, Dtype::fixed);
BENCHMARK_CAPTURE(sgd, f32, Dtype::f32);

void momentum(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto p = bench.tensor({elements}), g = bench.tensor({elements});
  const auto m = bench.tensor_of(state_of(dtype), {elements});
  bench.run(elements, [&] { optimizers::momentum(bench.queue, p, g, {}, 1e-6, 0.9, m); });
}
BENCHMARK_CAPTURE(momentum, exact, Dtype::fixed);
BENCHMARK_CAPTURE(momentum, f32, Dtype::f32);

void adam(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto p = bench.tensor({elements}), g = bench.tensor({elements});
  const auto m = bench.tensor_of(state_of(dtype), {elements}), v = bench.tensor_of(state_of(dtype), {elements}, 0, 4);
  const optimizers::AdamConstants constants{1e-6, 0.9, 0.95, 1e-8, 3, false, 0};
  bench.run(elements, [&] { optimizers::adam(bench.queue, p, g, {}, constants, m, v); });
}
BENCHMARK_CAPTURE(adam, exact, Dtype::fixed);
BENCHMARK_CAPTURE(adam, f64, Dtype::f64);
BENCHMARK_CAPTURE(adam, f32, Dtype::f32);

}  // namespace
}  // namespace shardproof
