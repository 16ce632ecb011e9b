// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/device.hpp"

#include "kernels/cuda_standin/block.hpp"

namespace shardproof::cuda_standin::device {

void sync_threads(const Site& site) { Block::running().sync_threads(site); }
void sync_warp(const Site& site, unsigned mask) { Block::running().sync_warp(site, mask); }
unsigned ballot(const Site& site, unsigned mask, bool predicate) {
  return Block::running().ballot(site, mask, predicate);
}
std::uint64_t shuffle(const Site& site, unsigned mask, std::uint64_t value, int from) {
  return Block::running().shuffle(site, mask, value, static_cast<unsigned>(from));
}
int lane() { return static_cast<int>(Block::running().lane()); }

}  // namespace shardproof::cuda_standin::device
