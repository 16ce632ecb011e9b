// SPDX-License-Identifier: Apache-2.0
// The one table of a workload's keys: parsing, settings, printing, ranges and help are made from it.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "suites/workload/workload.hpp"

namespace shardproof::workload {

using Member = std::variant<std::string Workload::*, std::int64_t Workload::*, std::uint64_t Workload::*,
                            double Workload::*, bool Workload::*, std::vector<std::int64_t> Workload::*,
                            std::vector<std::string> Workload::*, Activation Workload::*, Initialization Workload::*,
                            OptimizerKind Workload::*, DecayGroup Workload::*, RateSchedule Workload::*>;

/// Legal values of a number, or of each number in a list. NaN and infinities are outside of every range.
struct Range {
  double low = std::numeric_limits<double>::lowest(), high = std::numeric_limits<double>::max();
  bool open_high = false;

  bool contains(double x) const { return x >= low && (open_high ? x < high : x <= high); }
};

struct Key {
  std::string_view name;
  Member member;
  Range range;
  std::string_view meaning;
};

std::span<const Key> key_table();
/// nullptr for an unknown name.
const Key* find_key(std::string_view name);

/// "an integer from 1 to 10000", "gelu or relu", ...: what a message offers.
std::string legal_values(const Key& key);
/// The value as JSON text; a number that JSON cannot hold as "nan" or "inf".
std::string value_text(const Workload& workload, const Key& key);

/// The names of an enum's values, in their order.
std::span<const std::string_view> names_of(Activation);
std::span<const std::string_view> names_of(Initialization);
std::span<const std::string_view> names_of(OptimizerKind);
std::span<const std::string_view> names_of(DecayGroup);
std::span<const std::string_view> names_of(RateSchedule);

}  // namespace shardproof::workload
