// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/testing/bench.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace shardproof {
namespace {

void add(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const Dims dims{16384};
  const auto x = bench.tensor(dims), y = bench.tensor(dims), z = bench.tensor(dims);
  bench.run(z.elements(), [&] { elementwise::add(bench.queue, x, y, z); });
}
BENCHMARK_CAPTURE(add, exact, Dtype::fixed);
BENCHMARK_CAPTURE(add, f64, Dtype::f64);
BENCHMARK_CAPTURE(add, f32, Dtype::f32);

void columns(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto from = bench.tensor({128, 66}), to = bench.tensor({128, 64});
  bench.run(to.elements(), [&] { elementwise::columns(bench.queue, from, 1, to); });
}
BENCHMARK_CAPTURE(columns, exact, Dtype::fixed);
BENCHMARK_CAPTURE(columns, f32, Dtype::f32);

}  // namespace
}  // namespace shardproof
