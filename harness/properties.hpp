// SPDX-License-Identifier: Apache-2.0
// Properties of inputs that reveal public faults of distributed training, and which cases have them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case.hpp"
#include "harness/judge.hpp"
#include "harness/suite.hpp"
#include "suites/workload/batch.hpp"

namespace shardproof::harness {

/// What a property is decided by.
struct CaseFacts {
  workload::Workload workload;
  plan::Strategy strategy;
  std::vector<Shown> shows;  ///< what the judge asks for
  std::vector<workload::Batch> batches;
  /// Labels by step, data rank and microbatch; and samples by step and data rank.
  std::vector<std::vector<std::vector<std::int64_t>>> labels;
  std::vector<std::vector<std::int64_t>> samples;
};
/// Throws BadInput and NotSupported as the case would.
CaseFacts facts_of(const Case& value, std::span<const Shown> shows);

struct Property {
  std::string_view id, text;
  /// Without which no case has it, or not all of it: KEY or KEY=VALUE of the strategy, a key of the workload, a
  /// command.
  std::vector<std::string_view> techniques;
  bool (*holds)(const CaseFacts&);  ///< nullptr: needs a technique
};
std::span<const Property> properties();

/// Whether this program has the technique.
bool is_built(std::string_view technique);

struct Coverage {
  const Property* property;
  std::int64_t cases = 0;
  std::vector<std::string> entries = {};       ///< that they are of, as SUITE/ENTRY
  std::vector<std::string_view> not_yet = {};  ///< techniques
  /// No case, and nothing to wait for.
  bool is_missing() const { return cases == 0 && not_yet.empty(); }
};
/// Of every property, over the exact cases of the suites that are expected to pass.
std::vector<Coverage> coverage(std::span<const Suite> suites);

}  // namespace shardproof::harness
