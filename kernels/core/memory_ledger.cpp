// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/memory_ledger.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/errors.hpp"

namespace shardproof {

std::string_view name_of(Space space) { return space == Space::device ? "device" : "host"; }

std::string_view name_of(Category category) {
  constexpr std::array<std::string_view, category_count> names{
      "parameter", "gradient", "optimizer_state", "master_parameter", "activation", "workspace", "communication"};
  return names[static_cast<std::size_t>(category)];
}

void MemoryLedger::Count::add(std::int64_t bytes) {
  current += bytes;
  peak = std::max(peak, current);
}

void MemoryLedger::allocate(Category category, Space space, std::int64_t bytes, std::string_view who) {
  const std::lock_guard lock(mutex_);
  auto& counts = counts_[static_cast<std::size_t>(space)];
  if (space == Space::device && bytes > device_limit_ - counts.total.current) {
    throw OutOfMemory("rank " + std::to_string(static_cast<int>(rank_)) + ": " + std::string(name_of(category)) + " '" +
                      std::string(who) + "' asks for " + std::to_string(bytes) + " bytes with " +
                      std::to_string(counts.total.current) + " in use; the device has " +
                      std::to_string(device_limit_));
  }
  counts.category[static_cast<std::size_t>(category)].add(bytes);
  counts.total.add(bytes);
}

void MemoryLedger::release(Category category, Space space, std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  auto& counts = counts_[static_cast<std::size_t>(space)];
  counts.category[static_cast<std::size_t>(category)].current -= bytes;
  counts.total.current -= bytes;
}

std::int64_t MemoryLedger::current(Category category, Space space) const {
  const std::lock_guard lock(mutex_);
  return of(space).category[static_cast<std::size_t>(category)].current;
}

std::int64_t MemoryLedger::peak(Category category, Space space) const {
  const std::lock_guard lock(mutex_);
  return of(space).category[static_cast<std::size_t>(category)].peak;
}

std::int64_t MemoryLedger::current_total(Space space) const {
  const std::lock_guard lock(mutex_);
  return of(space).total.current;
}

std::int64_t MemoryLedger::peak_total(Space space) const {
  const std::lock_guard lock(mutex_);
  return of(space).total.peak;
}

void MemoryLedger::reset_peaks() {
  const std::lock_guard lock(mutex_);
  for (auto& counts : counts_) {
    for (auto& c : counts.category) c.peak = c.current;
    counts.total.peak = counts.total.current;
  }
}

}  // namespace shardproof
