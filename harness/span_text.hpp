// SPDX-License-Identifier: Apache-2.0
// A rank's spans as they travel from its process to the one that writes.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "kernels/core/span_log.hpp"

namespace shardproof::harness {

nlohmann::ordered_json json_of(const Spans& spans);

/// Reads it, with `offset` nanoseconds added to the times of the wall's clock. Names point into `names`.
Spans spans_of(const nlohmann::ordered_json& said, std::int64_t offset, std::set<std::string>& names);

}  // namespace shardproof::harness
