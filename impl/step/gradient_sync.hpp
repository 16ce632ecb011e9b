// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace shardproof::step {

/// The technique behind `sync=NAME`: how gradients meet in the data group. What comes in are this rank's unfinished
/// sums, what goes out are the group's.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  /// Gradient k of this rank is final: called once a step for each, in the same order on all ranks of the group.
  virtual void ready(std::size_t k) = 0;
  /// All are. Afterwards every gradient is the group's sum, in the order of the queue.
  virtual void finish() = 0;
};

struct GradientSyncTechnique {
  std::string_view name, paper;
  std::unique_ptr<GradientSync> (*make)(Queue& queue, comm::Communicator data_group,
                                        std::vector<Accumulator> gradients);
};
/// All, in the order of impl/data_parallel/CMakeLists.txt (generated).
std::span<const GradientSyncTechnique* const> gradient_syncs();

}  // namespace shardproof::step
