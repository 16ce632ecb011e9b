// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/core/track.hpp"

namespace shardproof::harness {

/// In the order of the enumeration.
std::span<const std::string> track_names();

/// Throws BadInput for any other name, with the nearest one.
Track track_named(std::string_view name);

}  // namespace shardproof::harness
