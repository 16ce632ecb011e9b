// SPDX-License-Identifier: Apache-2.0
#include "harness/peak.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "kernels/core/queue.hpp"
#include "kernels/matmul/matmul.hpp"

namespace shardproof::harness {

double measured_peak() {
  constexpr std::int64_t n = 2048;
  constexpr double flops = 2.0 * n * n * n;
  Device device({.poison = false});
  ImmediateQueue queue(device);
  const Tensor x(queue, {"x", Dtype::f32, {n, n}, Category::workspace});
  const Tensor w(queue, {"w", Dtype::f32, {n, n}, Category::workspace});
  const Tensor y(queue, {"y", Dtype::f32, {n, n}, Category::workspace});
  const std::vector<float> ones(static_cast<std::size_t>(n * n), 1.0f);
  upload<float>(queue, x, ones);
  upload<float>(queue, w, ones);
  double best = std::numeric_limits<double>::max();
  for (int k = 0; k < 10; ++k) {
    const auto start = std::chrono::steady_clock::now();
    matmul::forward(queue, x, w, Tensor(), y);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return flops / best;
}

}  // namespace shardproof::harness
