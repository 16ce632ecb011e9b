// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin {

namespace {

constexpr std::size_t alignment = 256;
constexpr int unwritten = 0xff;
constexpr std::byte guard{0xa5};

std::size_t guard_bytes() { return sanitizer::kind() == sanitizer::Kind::address ? 0 : alignment; }

}  // namespace

void* Memory::allocate(std::size_t bytes) {
  const std::size_t around = guard_bytes();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, std::max<std::size_t>(around + bytes + around, 1)) != 0) return nullptr;
  auto* const first = static_cast<std::byte*>(memory);
  std::fill_n(first, around, guard);
  std::memset(first + around, unwritten, bytes);
  std::fill_n(first + around + bytes, around, guard);
  const sanitizer::UnseenLock lock(mutex_);
  allocations_[first + around] = {bytes, first};
  return first + around;
}

bool Memory::release(void* p) {
  std::byte* memory = nullptr;
  {
    const sanitizer::UnseenLock lock(mutex_);
    const auto place = allocations_.find(static_cast<const std::byte*>(p));
    if (place == allocations_.end()) return false;
    memory = place->second.memory;
    allocations_.erase(place);
  }
  std::free(memory);
  return true;
}

Memory::Where Memory::where(const void* p, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(p);
  const auto* const end = begin + bytes;
  const sanitizer::UnseenLock lock(mutex_);
  auto place = allocations_.upper_bound(begin);
  if (place != allocations_.begin()) {
    const auto& [first, allocation] = *std::prev(place);
    const auto* const last = first + allocation.bytes;
    if (end <= last) return Where::inside;
    if (begin < last) return Where::across;
  }
  return place != allocations_.end() && place->first < end ? Where::across : Where::outside;
}

std::string Memory::overrun() const {
  const std::size_t around = guard_bytes();
  const sanitizer::UnseenLock lock(mutex_);
  for (const auto& [first, allocation] : allocations_) {
    const auto whole = [&](const std::byte* from) {
      return std::all_of(from, from + around, [](std::byte b) { return b == guard; });
    };
    for (const auto& [name, from] :
         {std::pair{"start", allocation.memory}, std::pair{"end", allocation.memory + around + allocation.bytes}}) {
      if (!whole(from)) {
        return std::string("a kernel has written past the ") + name + " of an allocation of " +
               std::to_string(allocation.bytes) + " bytes";
      }
    }
  }
  return {};
}

}  // namespace shardproof::cuda_standin
