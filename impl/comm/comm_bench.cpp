// SPDX-License-Identifier: Apache-2.0
// bench_collectives: algorithm and bus bandwidth as nccl-tests define them (payload over time; times what each rank
// must move per byte of payload), in GB/s of rank 0, beside the limit of plain copies between the same threads.
#include <cstring>
#include <latch>
#include <vector>

#include <benchmark/benchmark.h>

#include "impl/comm/world.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::comm {
namespace {

constexpr std::int64_t mib = 1 << 20;

struct Node {
  Communicator& group;
  Queue& queue;
  std::int64_t ranks;
  Tensor small, large;  // f32: a part of 1/ranks of the payload; the payload
  Tensor other;         // as large
  std::vector<std::int64_t> parts;
};

/// Every rank makes the call as often as rank 0 measures it. `factor`: bus bytes per byte of payload.
template <class F>
void measure(benchmark::State& state, double factor, F call) {
  const auto ranks = state.range(0), bytes = state.range(1);
  run_threads(ranks, {}, [&](World& world) {
    Device device({.rank = world.rank(), .poison = false});
    ImmediateQueue queue(device);
    auto group = world.all("bench");
    const auto make = [&](std::int64_t elements) {
      Tensor tensor(queue, {"t", Dtype::f32, {elements}, Category::workspace});
      zero(queue, tensor);
      return tensor;
    };
    const auto part = bytes / 4 / ranks;
    Node node{group, queue, ranks, make(part), make(part * ranks), make(part * ranks), {}};
    node.parts.assign(static_cast<std::size_t>(ranks), part);
    group.barrier(queue, "begin");
    if (world.rank() == Rank{0}) {
      for (auto _ : state) call(node);
    } else {
      for (benchmark::IterationCount k = 0; k < state.max_iterations; ++k) call(node);
    }
    group.barrier(queue, "end");
  });
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["algorithm_GB/s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9, rate);
  state.counters["bus_GB/s"] = benchmark::Counter(static_cast<double>(bytes) * factor * 1e-9, rate);
}

double others(const benchmark::State& state) {
  return static_cast<double>(state.range(0) - 1) / static_cast<double>(state.range(0));
}

void all_reduce(benchmark::State& state) {
  measure(state, 2 * others(state), [](Node& n) { n.group.all_reduce(n.queue, n.large, Operator::sum, "bench"); });
}
void reduce_scatter(benchmark::State& state) {
  measure(state, others(state),
          [](Node& n) { n.group.reduce_scatter(n.queue, n.large, n.small, n.parts, Operator::sum, "bench"); });
}
void all_gather(benchmark::State& state) {
  measure(state, others(state), [](Node& n) { n.group.all_gather(n.queue, n.small, n.large, n.parts, "bench"); });
}
void all_to_all(benchmark::State& state) {
  measure(state, others(state),
          [](Node& n) { n.group.all_to_all(n.queue, n.large, n.other, n.parts, n.parts, "bench"); });
}
void broadcast(benchmark::State& state) {
  measure(state, 1, [](Node& n) { n.group.broadcast(n.queue, n.large, 0, "bench"); });
}
void send_receive(benchmark::State& state) {
  measure(state, 1, [](Node& n) {
    n.group.send(n.queue, n.large, (n.group.place() + 1) % n.ranks, "bench");
    n.group.receive(n.queue, n.other, (n.group.place() + n.ranks - 1) % n.ranks, "bench");
  });
}
void barrier(benchmark::State& state) {
  measure(state, 0, [](Node& n) { n.group.barrier(n.queue, "bench"); });
}

/// What the memory gives: each thread copies the other's buffer into its own, both at once, by plain memcpy. Both
/// bandwidths are those of one thread.
void copy_limit(benchmark::State& state) {
  const auto ranks = state.range(0), bytes = state.range(1);
  std::vector<std::vector<std::byte>> from(static_cast<std::size_t>(ranks)), to(static_cast<std::size_t>(ranks));
  std::latch ready(ranks);
  run_threads(ranks, {}, [&](World& world) {
    const auto own = static_cast<std::size_t>(world.rank()), next = (own + 1) % from.size();
    from[own].resize(static_cast<std::size_t>(bytes));
    to[own].resize(static_cast<std::size_t>(bytes));
    ready.arrive_and_wait();
    const auto copy = [&] {
      std::memcpy(to[own].data(), from[next].data(), from[next].size());
      benchmark::ClobberMemory();
    };
    if (world.rank() == Rank{0}) {
      for (auto _ : state) copy();
    } else {
      for (benchmark::IterationCount k = 0; k < state.max_iterations; ++k) copy();
    }
  });
  const benchmark::Counter rate(static_cast<double>(bytes) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["algorithm_GB/s"] = state.counters["bus_GB/s"] = rate;
}

constexpr auto us = benchmark::kMicrosecond;
BENCHMARK(copy_limit)->Args({2, 16 * mib})->UseRealTime()->Unit(us);
BENCHMARK(all_reduce)
    ->Args({2, 4096})
    ->Args({2, mib})
    ->Args({2, 16 * mib})
    ->Args({4, 16 * mib})
    ->UseRealTime()
    ->Unit(us);
BENCHMARK(reduce_scatter)->Args({2, 16 * mib})->UseRealTime()->Unit(us);
BENCHMARK(all_gather)->Args({2, 16 * mib})->UseRealTime()->Unit(us);
BENCHMARK(all_to_all)->Args({2, 16 * mib})->UseRealTime()->Unit(us);
BENCHMARK(broadcast)->Args({2, 16 * mib})->UseRealTime()->Unit(us);
BENCHMARK(send_receive)->Args({2, 16 * mib})->UseRealTime()->Unit(us);
BENCHMARK(barrier)->Args({2, 0})->UseRealTime()->Unit(us);

}  // namespace
}  // namespace shardproof::comm
