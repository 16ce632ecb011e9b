// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/memory_ledger.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::comm {

/// Random pauses that bring out orders of events which a quiet machine never shows. A pause depends on seed, rank,
/// axis, channel, call and phase alone: half of them are none, the rest up to 200 us.
class Delays {
 public:
  Delays(std::optional<std::uint64_t> seed, Rank rank, const std::string& axis, const std::string& channel);

  /// Before phase 0, 1, 2 or 3 of a call.
  void pause(std::int64_t call, int phase) const;

 private:
  std::optional<RandomStream> random_;
};

}  // namespace shardproof::comm
