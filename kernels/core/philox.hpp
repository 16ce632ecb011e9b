// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror and Shaw, SC 2011): a number depends on
// (seed, name, element) and on nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shardproof {

/// The ten rounds on one counter.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The numbers of one (seed, name). The key is the first 8 bytes, little-endian, of SHA-256("SEED/NAME").
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  /// 32 random bits: word element%4 of counter {low32(element/4), high32(element/4), 0, 0}.
  std::uint32_t word(std::uint64_t element) const;
  /// word(first), word(first+1), ... : four times cheaper than one by one, and ten where there are hundreds.
  void words(std::uint64_t first, std::span<std::uint32_t> out) const;
  /// word(element) * 2^-32, in [0, 1).
  double uniform(std::uint64_t element) const { return word(element) * 0x1p-32; }

 private:
  std::array<std::uint32_t, 2> key_{};
};

}  // namespace shardproof
