// SPDX-License-Identifier: Apache-2.0
// For benchmarks: the roof of what consists of products.
#pragma once

#include <algorithm>
#include <chrono>

#include "kernels/matmul/matmul.hpp"

namespace shardproof::matmul::testing {

/// Multiply-adds a second of a large product on this thread, in 1e9: best of 10, measured once. f32 and f64 2048^3, as
/// MFU is reckoned; exact 1024^3.
template <class S>
double peak() {
  static const double best = [] {
    constexpr std::int64_t n = std::is_same_v<S, Fixed> ? 1024 : 2048;
    Device device({.poison = false});
    ImmediateQueue queue(device);
    const auto matrix = [&](const char* name) {
      Tensor tensor(queue, {name, dtype_of<S>(), {n, n}, Category::workspace});
      zero(queue, tensor);
      return tensor;
    };
    const auto x = matrix("x"), w = matrix("w"), y = matrix("y");
    double seconds = 1e9;
    for (int k = 0; k < 10; ++k) {
      const auto start = std::chrono::steady_clock::now();
      forward(queue, x, w, {}, y);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      seconds = std::min(seconds, time.count());
    }
    return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds * 1e-9;
  }();
  return best;
}

}  // namespace shardproof::matmul::testing
