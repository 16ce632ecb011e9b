// SPDX-License-Identifier: Apache-2.0
// The one table of a strategy's keys: parsing, printing, refusals and lists are made from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "impl/plan/strategy.hpp"

namespace shardproof::plan {

using StrategyMember =
    std::variant<std::int64_t Strategy::*, std::array<Axis, axis_count> Strategy::*, std::string Strategy::*,
                 std::vector<std::int64_t> Strategy::*, std::optional<double> Strategy::*, ScheduleSource Strategy::*>;

/// Layout keys must not change a bit of any result in the exact track; program keys change what the oracle computes.
enum class KeyKind : std::uint8_t { layout, program };

struct KeyRow {
  std::string_view name;
  StrategyMember member;
  KeyKind kind;
  std::string_view meaning;
  bool is_axis = false;                           ///< written NAMEsize
  std::vector<std::string> (*names)() = nullptr;  ///< legal values of a text
  std::string_view empty = {};                    ///< what an empty list is written as
  std::int64_t least = 0;                         ///< of a list's numbers
  bool is_other_algebra = false;                  ///< a value other than the default rounds otherwise in f64 and native
  /// Where a value other than the default has nothing to act on: "with pp1"; else "".
  std::string_view (*no_effect)(const Strategy&) = nullptr;
  /// Why the workload cannot be run with the value; else "".
  std::string (*refused)(const Strategy&, const workload::Workload&) = nullptr;
};

std::span<const KeyRow> strategy_table();

bool is_standard(const KeyRow& row, const Strategy& strategy);
void set_standard(const KeyRow& row, Strategy& strategy);
/// "dp2", "schedule=gpipe"; as it parses back, but for values that stand for the workload's.
std::string written(const KeyRow& row, const Strategy& strategy);
/// The values, for `list --strategies`.
std::string legal_values(const KeyRow& row);

/// Sizes and counts are 1 .. this.
inline constexpr std::int64_t largest_size = std::int64_t{1} << 31;

}  // namespace shardproof::plan
