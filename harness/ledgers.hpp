// SPDX-License-Identifier: Apache-2.0
// What the ranks of a training counted, and the closed forms it is held against, under the same names. Of one rank the
// names are bare; of several, memory and FLOPs have their rank in front, and traffic is that of all together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "harness/training.hpp"
#include "kernels/core/device.hpp"

namespace shardproof::harness {

/// Of one rank's device, over the times between start() and stop(): what judging holds in between does not count.
struct MemoryPeaks {
  std::array<std::int64_t, category_count> bytes{};
  std::int64_t total_bytes = 0;

  static void start(MemoryLedger& memory) { memory.reset_peaks(); }
  void stop(const MemoryLedger& memory);
};

struct RankLedgers {
  MemoryPeaks peak;
  std::vector<engine::SavedBytes> saved;
  std::int64_t peak_in_flight = 0;
  std::int64_t flops_model = 0, flops_hardware = 0;
  std::map<comm::TrafficKey, comm::Traffic> traffic;
};
RankLedgers ledgers_of(const MemoryPeaks& peak, Device& device, const comm::TrafficLedger& traffic,
                       const engine::Trainer& trainer);

Counts counted(const std::vector<RankLedgers>& ranks);
/// Tokens, and steps by what became of them.
Counts counted(const std::vector<engine::StepResult>& steps);
/// Of one step's global batch.
struct BatchSize {
  std::int64_t samples = 0, labels = 0;
};
Counts predicted(const TrainingJob& job, const plan::Plan& plan, const std::vector<BatchSize>& batches);

}  // namespace shardproof::harness
