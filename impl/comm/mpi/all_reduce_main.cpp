// SPDX-License-Identifier: Apache-2.0
// bench_mpi, under mpirun -n 2: an all-reduce of f32 through the transport beside the bare MPI_Allreduce, in the same
// run: the median of the ratios of interleaved pairs, with the interval that holds it at 95 %.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "impl/comm/mpi/state.hpp"
#include "kernels/core/device.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::comm {
namespace {

struct Size {
  const char* name;
  std::int64_t bytes, calls, pairs;  // calls: in a row, of each side of a pair
};
constexpr Size sizes[] = {{"1 KiB", 1 << 10, 4000, 41}, {"1 MiB", 1 << 20, 60, 31}, {"64 MiB", 1 << 26, 2, 15}};

/// Seconds of a call, of `calls` in a row that both begin together.
template <class F>
double seconds(std::int64_t calls, F call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t k = 0; k < calls; ++k) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(calls);
}

void measure(World& world, const Size& size) {
  Device device({.rank = world.rank(), .poison = false});
  ImmediateQueue queue(device);
  auto group = world.all("bench");
  const auto elements = size.bytes / 4;
  const Tensor tensor(queue, {"t", Dtype::f32, {elements}, Category::workspace});
  zero(queue, tensor);
  std::vector<float> values(static_cast<std::size_t>(elements));
  std::vector<double> ours, bare, ratios;
  for (std::int64_t pair = -1; pair < size.pairs; ++pair) {
    const double mpi = seconds(size.calls, [&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
    const double own = seconds(size.calls, [&] { group.all_reduce(queue, tensor, Operator::sum, "bench").wait(); });
    if (pair < 0) continue;  // warm
    bare.push_back(mpi), ours.push_back(own), ratios.push_back(own / mpi);
  }
  if (world.rank() != Rank{0}) return;
  for (auto* values_of : {&ours, &bare, &ratios}) std::sort(values_of->begin(), values_of->end());
  // The median lies between these order statistics with 95 % (binomial, its normal approximation).
  const auto n = static_cast<double>(size.pairs);
  const auto away = static_cast<std::size_t>(std::ceil(0.98 * std::sqrt(n)));
  const std::size_t middle = ratios.size() / 2;
  std::printf("all_reduce %-6s  %10.2f us, MPI_Allreduce %10.2f us, ratio %.3f (%.3f to %.3f, %lld pairs)\n", size.name,
              1e6 * ours[middle], 1e6 * bare[middle], ratios[middle], ratios[middle - away], ratios[middle + away],
              static_cast<long long>(size.pairs));
  std::fflush(stdout);
}

int run() {
  prepare_process();
  const auto job = MpiJob::begin();
  if (!job) {
    std::fputs("started alone: scripts/mpirun.sh -n 2 build/cpu/bench_mpi\n", stderr);
    return 2;
  }
  for (const Size& size : sizes) job->run({job->size(), job->size()}, {}, [&](World& world) { measure(world, size); });
  return 0;
}

}  // namespace
}  // namespace shardproof::comm

int main() { return shardproof::comm::run(); }
