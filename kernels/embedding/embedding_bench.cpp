// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/core/testing/bench.hpp"
#include "kernels/embedding/embedding.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t rows = 512, sequence = 256, vocab = 256, hidden = 384;

Tensor tokens(Queue& queue) {
  auto values = testing::uniform(1, "tokens", rows, 0, vocab);
  for (auto& value : values) value = std::floor(value);
  return testing::make(queue, "tokens", {rows}, values, Dtype::i32);
}

void embedding_forward(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto ids = tokens(bench.queue);
  const auto words = bench.tensor({vocab, hidden}), places = bench.tensor({sequence, hidden});
  const auto y = bench.tensor({rows, hidden});
  bench.run(rows * hidden, [&] { embedding::forward(bench.queue, ids, words, 0, vocab, places, y); });
}
BENCHMARK_CAPTURE(embedding_forward, exact, Dtype::fixed);
BENCHMARK_CAPTURE(embedding_forward, f32, Dtype::f32);

void embedding_backward_weight(benchmark::State& state, Dtype dtype) {
  testing::Bench bench(state, dtype);
  const auto ids = tokens(bench.queue);
  const auto dy = bench.tensor({rows, hidden});
  Accumulator words(bench.queue, {"words", dtype, {vocab, hidden}, Category::gradient});
  Accumulator places(bench.queue, {"places", dtype, {sequence, hidden}, Category::gradient});
  bench.run(rows * hidden, [&] {
    words.restart(bench.queue);
    places.restart(bench.queue);
    embedding::backward_weight(bench.queue, ids, dy, 0, vocab, sequence, words, places);
  });
}
BENCHMARK_CAPTURE(embedding_backward_weight, exact, Dtype::fixed);
BENCHMARK_CAPTURE(embedding_backward_weight, f32, Dtype::f32);

}  // namespace
}  // namespace shardproof
