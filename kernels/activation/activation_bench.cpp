// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.hpp"
#include "kernels/core/testing/bench.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t elements = 16384;

void gelu_forward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto x = bench.tensor({elements}), y = bench.tensor({elements});
  bench.run(elements, [&] { activation::forward(bench.queue, activation::Kind::gelu, x, y); });
}
BENCHMARK_CAPTURE(gelu_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(gelu_forward, f64, Dtype::f64);
BENCHMARK_CAPTURE(gelu_forward, f32, Dtype::f32);

void gelu_backward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto x = bench.tensor({elements}), dy = bench.tensor({elements}), dx = bench.tensor({elements});
  bench.run(elements, [&] { activation::backward(bench.queue, activation::Kind::gelu, x, dy, dx); });
}
BENCHMARK_CAPTURE(gelu_backward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(gelu_backward, f64, Dtype::f64);
BENCHMARK_CAPTURE(gelu_backward, f32, Dtype::f32);

void relu_forward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto x = bench.tensor({elements}), y = bench.tensor({elements});
  bench.run(elements, [&] { activation::forward(bench.queue, activation::Kind::relu, x, y); });
}
BENCHMARK_CAPTURE(relu_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(relu_forward, f32, Dtype::f32);

void relu_backward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto x = bench.tensor({elements}), dy = bench.tensor({elements}), dx = bench.tensor({elements});
  bench.run(elements, [&] { activation::backward(bench.queue, activation::Kind::relu, x, dy, dx); });
}
BENCHMARK_CAPTURE(relu_backward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(relu_backward, f32, Dtype::f32);

}  // namespace
}  // namespace shardproof
