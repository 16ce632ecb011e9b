// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/suite.hpp"

namespace shardproof::harness {

/// One entry of a suite, whose files are found from `folder`. What is wrong with it goes to findings, each starting
/// with `origin`.
Entry read_entry(const nlohmann::ordered_json& object, const std::string& origin, std::vector<std::string>& findings,
                 std::optional<std::uint64_t> seed, const std::filesystem::path& folder);

}  // namespace shardproof::harness
