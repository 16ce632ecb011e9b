// SPDX-License-Identifier: Apache-2.0
// For *_bench.cpp: one device without poison, random tensors, and time per element.
#pragma once

#include <string>

#include <benchmark/benchmark.h>

#include "kernels/core/testing/testing.hpp"

namespace shardproof::testing {

class Bench {
 public:
  Bench(benchmark::State& state, Dtype dtype) : state_(state), dtype_(dtype) {}

  /// Uniform in [low, high).
  Tensor tensor(const Dims& dims, double low = -2, double high = 2) { return tensor_of(dtype_, dims, low, high); }
  Tensor tensor_of(Dtype dtype, const Dims& dims, double low = -2, double high = 2) {
    const auto name = "bench." + std::to_string(count_++);
    return make(queue, name, dims, uniform(1, name, elements_of(dims), low, high), dtype);
  }

  /// Times f() and reports seconds per element ("230p": 230 picoseconds).
  template <class F>
  void run(std::int64_t elements, F f) {
    for (auto _ : state_) {
      f();
      benchmark::ClobberMemory();
    }
    const auto rate = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
    state_.counters["per_element"] = benchmark::Counter(static_cast<double>(elements), rate);
  }

  Device device{DeviceOptions{.poison = false}};
  ImmediateQueue queue{device};

 private:
  benchmark::State& state_;
  Dtype dtype_;
  int count_ = 0;
};

}  // namespace shardproof::testing
