// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string_view>

namespace shardproof {

enum class Rank : std::int32_t {};

/// Where a tensor lives. On a CPU rank `device` is ordinary memory that only kernels may touch.
enum class Space : std::uint8_t { device, host };
inline constexpr std::size_t space_count = 2;

/// What an allocation is for.
enum class Category : std::uint8_t {
  parameter,
  gradient,
  optimizer_state,
  master_parameter,
  activation,
  workspace,
  communication,
};
inline constexpr std::size_t category_count = 7;

std::string_view name_of(Space space);
std::string_view name_of(Category category);

/// Counts one rank's bytes by category and space, current and peak, and enforces the limit of its device space.
/// Thread-safe: queues allocate from their own threads.
class MemoryLedger {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  explicit MemoryLedger(Rank rank, std::int64_t device_limit_bytes = unlimited)
      : rank_(rank), device_limit_(device_limit_bytes) {}

  /// Throws OutOfMemory, naming rank, category, who asked and the limit; then nothing is charged.
  void allocate(Category category, Space space, std::int64_t bytes, std::string_view who);
  void release(Category category, Space space, std::int64_t bytes) noexcept;

  std::int64_t current(Category category, Space space = Space::device) const;
  std::int64_t peak(Category category, Space space = Space::device) const;
  /// Over all categories. The peak of the total, not the sum of the peaks.
  std::int64_t current_total(Space space = Space::device) const;
  std::int64_t peak_total(Space space = Space::device) const;
  /// Peaks start again from the current bytes.
  void reset_peaks();

 private:
  struct Count {
    std::int64_t current = 0, peak = 0;
    void add(std::int64_t bytes);
  };
  struct Counts {
    std::array<Count, category_count> category;
    Count total;
  };
  const Counts& of(Space space) const { return counts_[static_cast<std::size_t>(space)]; }

  Rank rank_;
  std::int64_t device_limit_;
  mutable std::mutex mutex_;
  std::array<Counts, space_count> counts_;
};

}  // namespace shardproof
