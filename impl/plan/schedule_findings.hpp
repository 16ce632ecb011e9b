// SPDX-License-Identifier: Apache-2.0
// What the checker says of a schedule.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardproof::plan {

/// What is wrong, and where; of what is missing `at` is none.
struct ScheduleFinding {
  static constexpr std::int64_t nowhere = -1;

  std::int64_t rank = nowhere, at = nowhere;  ///< at: of the rank's actions
  std::string text;                           ///< "0B1 comes before 0F1"
};

/// The first hundred, and how many more: a file of millions of actions may be wrong in each.
class ScheduleFindings {
 public:
  /// `text()` is called for those that are kept.
  void add(std::int64_t rank, std::int64_t at, const auto& text) {
    constexpr std::uint64_t most = 100;
    if (++count_ <= most) list_.push_back({rank, at, text()});
  }
  bool empty() const { return count_ == 0; }
  std::vector<ScheduleFinding> list() && {
    if (count_ > list_.size()) list_.push_back({.text = std::to_string(count_ - list_.size()) + " more findings"});
    return std::move(list_);
  }

 private:
  std::vector<ScheduleFinding> list_;
  std::uint64_t count_ = 0;
};

}  // namespace shardproof::plan
