// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <vector>

#include "kernels/core/testing/bench.hpp"

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

}  // namespace
}  // namespace shardproof
