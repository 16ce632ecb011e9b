// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/grid.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda_standin/block.hpp"
#include "kernels/cuda_standin/device.hpp"

namespace shardproof::cuda_standin {

namespace {

/// The last launch's block: its stacks are made once.
struct Kept {
  std::unique_ptr<Block> block;
  dim3 dim;
  ThreadOrder order;
};
thread_local Kept kept;

std::unique_ptr<Block> take_block(const dim3& dim, const ThreadOrder& order) {
  const auto key = [](const dim3& d, const ThreadOrder& o) { return std::tuple(d.x, d.y, d.z, o.kind, o.seed); };
  if (kept.block && key(kept.dim, kept.order) == key(dim, order)) return std::move(kept.block);
  kept.block = nullptr;
  return std::make_unique<Block>(dim, order);
}

std::vector<std::uint64_t> block_order(std::uint64_t blocks, const ThreadOrder& order) {
  std::vector<std::uint64_t> turns(blocks);
  std::iota(turns.begin(), turns.end(), std::uint64_t{0});
  if (order.kind == ThreadOrder::Kind::reverse) std::reverse(turns.begin(), turns.end());
  if (order.kind == ThreadOrder::Kind::shuffled) std::shuffle(turns.begin(), turns.end(), std::mt19937(order.seed));
  return turns;
}

}  // namespace

void run_grid(const dim3& grid, const dim3& dim, const ThreadOrder& order, const std::function<void()>& kernel) {
  auto block = take_block(dim, order);
  gridDim = grid;
  blockDim = dim;
  for (const auto i : block_order(std::uint64_t{grid.x} * grid.y * grid.z, order)) {
    blockIdx = {static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                static_cast<unsigned>(i / grid.x / grid.y)};
    block->run(kernel);
  }
  kept = {std::move(block), dim, order};  // not after an error, which leaves threads where they were
}

}  // namespace shardproof::cuda_standin
