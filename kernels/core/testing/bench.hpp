// SPDX-License-Identifier: Apache-2.0
// For *_bench.cpp: one device without poison, random tensors, time per element, and bandwidth beside its roof.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/core/testing/testing.hpp"

namespace shardproof::testing {

/// Bytes a second, in 1e9, of a plain copy that touches so many bytes, half of them read and half written: best of many
/// in 10 ms on this thread, measured once for each size. Sizes that a cache holds have that cache's roof.
inline double copy_roof(std::int64_t bytes) {
  static std::map<std::int64_t, double> measured;
  const auto half = static_cast<std::size_t>(std::max<std::int64_t>(bytes / 2, 1));
  const auto [place, is_new] = measured.try_emplace(bytes);
  if (is_new) {
    const std::vector<char> from(half, 1);
    std::vector<char> to(half);
    using Clock = std::chrono::steady_clock;
    double best = 1e9;
    for (const auto end = Clock::now() + std::chrono::milliseconds(10); Clock::now() < end;) {
      constexpr int times = 4;
      const auto start = Clock::now();
      for (int k = 0; k < times; ++k) {
        std::memcpy(to.data(), from.data(), half);
        benchmark::DoNotOptimize(to.data());
        benchmark::ClobberMemory();
      }
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / times);
    }
    place->second = 2e-9 * static_cast<double>(half) / best;
  }
  return place->second;
}

class Bench {
 public:
  Bench(benchmark::State& state, Dtype dtype) : state_(state), dtype_(dtype) {}

  /// Uniform in [low, high).
  Tensor tensor(const Dims& dims, double low = -2, double high = 2) { return tensor_of(dtype_, dims, low, high); }
  Tensor tensor_of(Dtype dtype, const Dims& dims, double low = -2, double high = 2) {
    const auto name = "bench." + std::to_string(count_++);
    return make(queue, name, dims, uniform(1, name, elements_of(dims), low, high), dtype);
  }

  /// Times f() and reports seconds per element ("230p": 230 picoseconds), and bytes a second beside the copy's, of all
  /// tensors on the device, each taken once.
  template <class F>
  void run(std::int64_t elements, F f) {
    const auto bytes = device.memory().current_total();
    state_.counters["roof_GB/s"] = copy_roof(bytes);
    for (auto _ : state_) {
      f();
      benchmark::ClobberMemory();
    }
    const auto rate = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
    state_.counters["per_element"] = benchmark::Counter(static_cast<double>(elements), rate);
    state_.counters["GB/s"] =
        benchmark::Counter(1e-9 * static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);
  }

  Device device{DeviceOptions{.poison = false}};
  ImmediateQueue queue{device};

 private:
  benchmark::State& state_;
  Dtype dtype_;
  int count_ = 0;
};

}  // namespace shardproof::testing
