// SPDX-License-Identifier: Apache-2.0
// Wide sums (reference/ARITHMETIC.md, rule 5): integers of up to 128 bits summed without rounding.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/core/scalar.hpp"

namespace shardproof {

/// A sum of up to 2^31 terms of 128 bits in four int64 lanes: lane k sums the terms' bits 32k..32k+31 (the top lane's
/// are signed), so lanes of several sums may be added in any order, by an integer all-reduce too.
struct WideSum {
  std::array<std::int64_t, 4> lane{};

  SHARDPROOF_HD void add(int128 value) {
    for (int k = 0; k < 3; ++k) {
      lane[static_cast<std::size_t>(k)] += static_cast<std::int64_t>(static_cast<std::uint32_t>(value >> (32 * k)));
    }
    lane[3] += static_cast<std::int64_t>(value >> 96);
  }
  SHARDPROOF_HD WideSum& operator+=(const WideSum& other) {
    for (std::size_t k = 0; k < 4; ++k) lane[k] += other.lane[k];
    return *this;
  }
  friend bool operator==(const WideSum&, const WideSum&) = default;
};

/// The double nearest to the total, ties to even. The total is in units of the terms; scale it by a power of two.
double to_double(const WideSum& sum);

}  // namespace shardproof
