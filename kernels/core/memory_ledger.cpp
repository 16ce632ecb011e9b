// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/memory_ledger.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/errors.hpp"
#include "kernels/core/thread_memory.hpp"

namespace shardproof {

namespace {

thread_local std::array<std::int64_t, category_count> of_this_thread{};

void add_to_thread(Category category, Space space, std::int64_t bytes) {
  if (space == Space::device) of_this_thread[static_cast<std::size_t>(category)] += bytes;
}

}  // namespace

std::int64_t allocated_by_this_thread(Category category) { return of_this_thread[static_cast<std::size_t>(category)]; }

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
  add_to_thread(category, space, bytes);
}

void MemoryLedger::release(Category category, Space space, std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  auto& counts = counts_[static_cast<std::size_t>(space)];
  counts.category[static_cast<std::size_t>(category)].current -= bytes;
  counts.total.current -= bytes;
  add_to_thread(category, space, -bytes);
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
