// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/philox.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/sha256.hpp"

namespace shardproof {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

namespace {

std::array<std::uint32_t, 4> counter_of(std::uint64_t element) {
  const auto block = element / 4;
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name) {
  const auto hash = Sha256().add(std::to_string(seed) + "/").add(name).finish();
  for (std::size_t i = 0; i < 8; ++i) key_[i / 4] |= std::uint32_t{hash[i]} << (i % 4 * 8);
}

std::uint32_t RandomStream::word(std::uint64_t element) const {
  return philox4x32(counter_of(element), key_)[element % 4];
}

void RandomStream::words(std::uint64_t first, std::span<std::uint32_t> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const auto four = philox4x32(counter_of(first + done), key_);
    const auto skip = (first + done) % 4;
    const auto count = std::min<std::size_t>(4 - skip, out.size() - done);
    std::copy_n(four.begin() + static_cast<std::ptrdiff_t>(skip), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

}  // namespace shardproof
