// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/wide.hpp"

#include <bit>
#include <cmath>

namespace shardproof {

double to_double(const WideSum& sum) {
  // Carry into five limbs of 32 bits in two's complement, most significant last.
  std::array<std::uint32_t, 5> limb{};
  std::int64_t carry = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    const int128 total = static_cast<int128>(sum.lane[k]) + carry;
    limb[k] = static_cast<std::uint32_t>(total);
    carry = static_cast<std::int64_t>(total >> 32);
  }
  limb[4] = static_cast<std::uint32_t>(carry);
  const bool negative = carry < 0;
  if (negative) {
    std::uint64_t one = 1;
    for (auto& l : limb) {
      one += static_cast<std::uint32_t>(~l);
      l = static_cast<std::uint32_t>(one);
      one >>= 32;
    }
  }
  // The top 64 significant bits, with every lower bit folded into the last: the conversion then rounds once, rightly.
  std::size_t top = 5;
  while (top > 0 && limb[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const auto at = [&](std::size_t k) { return k < top ? std::uint64_t{limb[top - 1 - k]} : 0; };
  const int shift = std::countl_zero(static_cast<std::uint32_t>(at(0)));
  const uint128 head = (static_cast<uint128>(at(0) << 32 | at(1)) << 64 | (at(2) << 32 | at(3))) << shift;
  auto mantissa = static_cast<std::uint64_t>(head >> 64);
  if (static_cast<std::uint64_t>(head) != 0 || at(4) != 0) mantissa |= 1;
  const int exponent = static_cast<int>(top) * 32 - 64 - shift;
  const double magnitude = std::ldexp(static_cast<double>(mantissa), exponent);
  return negative ? -magnitude : magnitude;
}

}  // namespace shardproof
