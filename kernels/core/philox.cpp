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

constexpr std::size_t lanes = 32;

/// The ten rounds on `lanes` counters from `block` on, all at once: loops over them vectorise.
void philox_lanes(std::uint64_t block, std::array<std::uint32_t, 2> key, std::span<std::uint32_t, 4 * lanes> out) {
  std::array<std::uint32_t, lanes> c0, c1, c2{}, c3{};
  for (std::size_t i = 0; i < lanes; ++i) {
    c0[i] = static_cast<std::uint32_t>(block + i);
    c1[i] = static_cast<std::uint32_t>((block + i) >> 32);
  }
  for (int round = 0; round < 10; ++round) {
#ifndef __clang__
#pragma GCC unroll 1  // unrolled too early, it is no longer seen as vectors
#endif
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ key[0];
      c1[i] = static_cast<std::uint32_t>(b);
      c2[i] = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ key[1];
      c3[i] = static_cast<std::uint32_t>(a);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (std::size_t i = 0; i < lanes; ++i) {
    out[4 * i] = c0[i];
    out[4 * i + 1] = c1[i];
    out[4 * i + 2] = c2[i];
    out[4 * i + 3] = c3[i];
  }
}

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
    if ((first + done) % 4 == 0 && out.size() - done >= 4 * lanes) {
      philox_lanes((first + done) / 4, key_, out.subspan(done).first<4 * lanes>());
      done += 4 * lanes;
      continue;
    }
    const auto four = philox4x32(counter_of(first + done), key_);
    const auto skip = (first + done) % 4;
    const auto count = std::min<std::size_t>(4 - skip, out.size() - done);
    std::copy_n(four.begin() + static_cast<std::ptrdiff_t>(skip), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

}  // namespace shardproof
