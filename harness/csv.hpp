// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardproof::harness {

/// The text as a field of CSV (RFC 4180), in quotes where it needs them; zero bytes, which readers take for the end,
/// are left out.
std::string csv_field(std::string_view text);

}  // namespace shardproof::harness
