// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/testing/bench.hpp"
#include "kernels/layer_norm/layer_norm.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t rows = 32, hidden = 768;

/// A layer norm and its gradients' operands.
struct Norm {
  Norm(benchmark::State& state, Dtype dtype) : bench(state, dtype) {
    layer_norm::forward(bench.queue, x, weight, bias, 1e-5, y, mean, rstd);
  }
  testing::Bench bench;
  Tensor x = bench.tensor({rows, hidden}), dy = bench.tensor({rows, hidden}), y = bench.tensor({rows, hidden});
  Tensor weight = bench.tensor({hidden}), bias = bench.tensor({hidden});
  Tensor mean = bench.tensor({rows}), rstd = bench.tensor({rows});
};

void layer_norm_forward(benchmark::State& state, Dtype dtype) {
  Norm n(state, dtype);
  n.bench.run(rows * hidden,
              [&] { layer_norm::forward(n.bench.queue, n.x, n.weight, n.bias, 1e-5, n.y, n.mean, n.rstd); });
}
BENCHMARK_CAPTURE(layer_norm_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(layer_norm_forward, f64, Dtype::f64);
BENCHMARK_CAPTURE(layer_norm_forward, f32, Dtype::f32);

void layer_norm_backward_input(benchmark::State& state, Dtype dtype) {
  Norm n(state, dtype);
  n.bench.run(rows * hidden,
              [&] { layer_norm::backward_input(n.bench.queue, n.dy, n.x, n.mean, n.rstd, n.weight, n.y); });
}
BENCHMARK_CAPTURE(layer_norm_backward_input, exact, Dtype::fixed);
BENCHMARK_CAPTURE(layer_norm_backward_input, f64, Dtype::f64);
BENCHMARK_CAPTURE(layer_norm_backward_input, f32, Dtype::f32);

void layer_norm_backward_weight(benchmark::State& state, Dtype dtype) {
  Norm n(state, dtype);
  Accumulator dweight(n.bench.queue, {"dweight", dtype, {hidden}, Category::gradient});
  Accumulator dbias(n.bench.queue, {"dbias", dtype, {hidden}, Category::gradient});
  n.bench.run(rows * hidden, [&] {
    dweight.restart(n.bench.queue);
    dbias.restart(n.bench.queue);
    layer_norm::backward_weight(n.bench.queue, n.dy, n.x, n.mean, n.rstd, dweight, dbias);
  });
}
BENCHMARK_CAPTURE(layer_norm_backward_weight, exact, Dtype::fixed);
BENCHMARK_CAPTURE(layer_norm_backward_weight, f64, Dtype::f64);
BENCHMARK_CAPTURE(layer_norm_backward_weight, f32, Dtype::f32);

}  // namespace
}  // namespace shardproof
