// SPDX-License-Identifier: Apache-2.0
// Forward, dX and dW of the two linear maps of a `laptop` MLP, poison scans off, packing and bounds included; the
// bias's gradient beside a copy.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/core/philox.hpp"
#include "kernels/core/testing/bench.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/matmul/testing.hpp"

namespace shardproof::matmul {
namespace {

enum class Pass { forward, forward_add, backward_input, backward_weight };

template <class S>
Tensor filled(Queue& queue, std::string name, Dims dims) {
  const RandomStream random(1, name);
  Tensor tensor(queue, {std::move(name), dtype_of<S>(), dims, Category::activation});
  std::vector<S> values(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = round_to<S>(static_cast<Real<S>>(random.uniform(i) - 0.5));
  upload<S>(queue, tensor, values);
  return tensor;
}

template <class S>
void run(benchmark::State& state, Pass pass) {
  const auto rows = state.range(0), in = state.range(1), out = state.range(2);
  Device device({.poison = false});
  ImmediateQueue queue(device);
  const auto x = filled<S>(queue, "x", {rows, in}), w = filled<S>(queue, "w", {out, in});
  const auto y = filled<S>(queue, "y", {rows, out}), bias = filled<S>(queue, "bias", {out});
  Accumulator sum(queue, {"sum", dtype_of<S>(), {rows, out}, Category::activation});
  Accumulator dx(queue, {"dx", dtype_of<S>(), {rows, in}, Category::gradient});
  Accumulator dw(queue, {"dw", dtype_of<S>(), {out, in}, Category::gradient});
  state.counters["roof_GMAC/s"] = testing::peak<S>();
  for (auto _ : state) {
    switch (pass) {
      case Pass::forward: forward(queue, x, w, bias, y); break;
      case Pass::forward_add:
        sum.restart(queue);
        forward(queue, x, w, bias, sum);
        break;
      case Pass::backward_input: backward_input(queue, y, w, dx); break;
      case Pass::backward_weight: backward_weight(queue, y, x, dw); break;
    }
  }
  state.counters["GMAC/s"] =
      benchmark::Counter(static_cast<double>(rows * in * out) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void bias_gradient(benchmark::State& state, Dtype dtype) {
  shardproof::testing::Bench bench(state, dtype);
  const auto dy = bench.tensor({256, 384});
  Accumulator db(bench.queue, {"db", dtype, {384}, Category::gradient});
  bench.run(dy.elements(), [&] {
    db.restart(bench.queue);
    backward_bias(bench.queue, dy, db);
  });
}
BENCHMARK_CAPTURE(bias_gradient, exact, Dtype::fixed);
BENCHMARK_CAPTURE(bias_gradient, f64, Dtype::f64);
BENCHMARK_CAPTURE(bias_gradient, f32, Dtype::f32);

template <class S>
void add(const std::string& track) {
  const auto add_pass = [&](const char* name, Pass pass) {
    benchmark::RegisterBenchmark(("matmul/" + track + "/" + name).c_str(), run<S>, pass)
        ->Args({2048, 384, 1536})
        ->Args({2048, 1536, 384})
        ->Args({48, 24, 96})
        ->Unit(benchmark::kMillisecond);
  };
  add_pass("forward", Pass::forward);
  add_pass("forward_add", Pass::forward_add);
  add_pass("backward_input", Pass::backward_input);
  add_pass("backward_weight", Pass::backward_weight);
}

[[maybe_unused]] const bool added = (add<Fixed>("exact"), add<double>("f64"), add<float>("f32"), true);

}  // namespace
}  // namespace shardproof::matmul
