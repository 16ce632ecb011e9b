// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/poison.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace shardproof::poison {

namespace {

constexpr std::uint64_t nan64 = 0x7ff8'0000'dead'beefu;
constexpr std::uint32_t nan32 = 0x7fc0'beefu;
constexpr std::size_t alignment = 64;
constexpr std::uint16_t bf16_nan = 0x7fc5u, f16_nan = 0x7e5au;

template <class Word>
void fill_with(std::byte* data, std::int64_t bytes, Word word) {
  for (std::int64_t at = 0; at + std::int64_t{sizeof word} <= bytes; at += std::int64_t{sizeof word}) {
    std::memcpy(data + at, &word, sizeof word);
  }
}

/// The first word with (word & mask) == value. The sign of a NaN may flip on its way, so masks leave it out.
template <class Word>
std::int64_t find_word(const std::byte* data, std::int64_t elements, Word mask, Word value) {
  const auto word_at = [data](std::int64_t i) {
    Word word;
    std::memcpy(&word, data + i * std::int64_t{sizeof word}, sizeof word);
    return word;
  };
  constexpr std::int64_t block = 1024;
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    const std::int64_t end = std::min(elements, begin + block);
    Word hits = 0;
    for (std::int64_t i = begin; i < end; ++i) hits = static_cast<Word>(hits | Word((word_at(i) & mask) == value));
    if (hits == 0) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      if ((word_at(i) & mask) == value) return i;
    }
  }
  return -1;
}

/// Asks for huge pages for what lies from `data` to the heap's end, where that is new: most systems give them to those
/// that ask. A step of `laptop` took a seventh less time, for translations no longer miss and prefetchers no longer
/// stop at every 4 KiB. Only speed is at stake: what the call returns is not looked at.
void ask_for_huge_pages([[maybe_unused]] const std::byte* data) {
#ifdef __linux__
  static std::atomic<std::uintptr_t> asked = 0;
  constexpr std::uintptr_t page = 4096;  // a larger one refuses, or begins here as well
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  const auto begin = reinterpret_cast<std::uintptr_t>(data) / page * page;
  if (begin >= end || asked.exchange(end) == end) return;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace

std::byte* allocate(std::int64_t bytes) {
  // Not aligned_alloc: the C library cuts off what lies before and behind, and merges it again with the next free.
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  auto* const block = static_cast<std::byte*>(std::malloc(size + alignment));
  if (block == nullptr) return nullptr;
  ask_for_huge_pages(block);
  const std::size_t before = alignment - reinterpret_cast<std::uintptr_t>(block) % alignment;  // 16 at least
  std::memcpy(block + before - sizeof block, &block, sizeof block);
  return block + before;
}

void release(std::byte* data) {
  if (data == nullptr) return;
  std::byte* block = nullptr;
  std::memcpy(&block, data - sizeof block, sizeof block);
  std::free(block);
}

void fill(Dtype dtype, std::byte* data, std::int64_t bytes) {
  switch (dtype) {
    case Dtype::fixed:
    case Dtype::i64: return fill_with(data, bytes, std::numeric_limits<std::int64_t>::min());
    case Dtype::f64: return fill_with(data, bytes, nan64);
    case Dtype::f32: return fill_with(data, bytes, nan32);
    case Dtype::bf16: return fill_with(data, bytes, bf16_nan);
    case Dtype::f16: return fill_with(data, bytes, f16_nan);
    case Dtype::i32: return fill_with(data, bytes, std::numeric_limits<std::int32_t>::min());
    case Dtype::u8: return fill_with(data, bytes, std::uint8_t{0xA5});
  }
}

std::int64_t find_out_of_range(const Fixed* data, std::int64_t elements) {
  constexpr std::int64_t block = 1024;
  // raw + (2^62 - 1) as unsigned is at most 2^63 - 2 exactly when raw is in range.
  constexpr auto shift = static_cast<std::uint64_t>(fixed_limit - 1);
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    const std::int64_t end = std::min(elements, begin + block);
    std::uint64_t top = 0;
    for (std::int64_t i = begin; i < end; ++i)
      top |= std::uint64_t{static_cast<std::uint64_t>(data[i].raw) + shift > 2 * shift};
    if (top == 0) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      if (!in_range(data[i])) return i;
    }
  }
  return -1;
}

std::int64_t find(Dtype dtype, const std::byte* data, std::int64_t elements) {
  switch (dtype) {
    case Dtype::fixed: return find_out_of_range(reinterpret_cast<const Fixed*>(data), elements);
    case Dtype::i64: return find_word<std::uint64_t>(data, elements, ~std::uint64_t{0}, std::uint64_t{1} << 63);
    case Dtype::f64: return find_word<std::uint64_t>(data, elements, ~std::uint64_t{0} >> 1, nan64);
    case Dtype::f32: return find_word<std::uint32_t>(data, elements, ~std::uint32_t{0} >> 1, nan32);
    case Dtype::bf16: return find_word<std::uint16_t>(data, elements, 0x7fffu, bf16_nan);
    case Dtype::f16: return find_word<std::uint16_t>(data, elements, 0x7fffu, f16_nan);
    case Dtype::i32: return find_word<std::uint32_t>(data, elements, ~std::uint32_t{0}, std::uint32_t{1} << 31);
    case Dtype::u8: return -1;
  }
  return -1;
}

}  // namespace shardproof::poison
