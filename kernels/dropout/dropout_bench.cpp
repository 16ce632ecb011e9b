// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernels/core/testing/bench.hpp"
#include "kernels/dropout/dropout.hpp"

namespace shardproof {
namespace {

const dropout::Site site{0.1, RandomStream(1, "dropout"), 0};

void dropout_mask(benchmark::State& state) {
  testing::Bench bench(state, Dtype::f32);
  const Tensor mask(bench.queue, {"mask", Dtype::u8, {65536}, Category::activation});
  bench.queue.submit("mask", [&](KernelScope& scope) {
    auto* const to = scope.write<std::uint8_t>(mask);
    bench.run(mask.elements(), [&] { dropout::fill_mask(site, 0, mask.elements(), to); });
  });
}
BENCHMARK(dropout_mask);

void dropout_forward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const Dims dims{16384};
  const auto x = bench.tensor(dims), y = bench.tensor(dims);
  const Tensor mask(bench.queue, {"mask", Dtype::u8, dims, Category::activation});
  bench.run(y.elements(), [&] { dropout::forward(bench.queue, site, x, mask, y); });
}
BENCHMARK_CAPTURE(dropout_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(dropout_forward, f64, Dtype::f64);
BENCHMARK_CAPTURE(dropout_forward, f32, Dtype::f32);

void dropout_backward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const Dims dims{16384};
  const auto dy = bench.tensor(dims), dx = bench.tensor(dims);
  const Tensor mask(bench.queue, {"mask", Dtype::u8, dims, Category::activation});
  dropout::forward(bench.queue, site, dy, mask, dx);
  bench.run(dx.elements(), [&] { dropout::backward(bench.queue, site.probability, mask, dy, dx); });
}
BENCHMARK_CAPTURE(dropout_backward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(dropout_backward, f64, Dtype::f64);
BENCHMARK_CAPTURE(dropout_backward, f32, Dtype::f32);

}  // namespace
}  // namespace shardproof
