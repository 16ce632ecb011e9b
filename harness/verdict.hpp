// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/exit_code.hpp"

namespace shardproof::harness {

/// What became of a case. The default is error: nothing passes by doing nothing.
enum class Verdict : std::uint8_t {
  error,
  pass,
  fail,
  unsupported,   ///< refused by the strategy table
  skipped,       ///< not run
  mistrusted,    ///< ran, but its input could not have shown a fault
  inconclusive,  ///< measured, but too noisy to say
};

std::string_view name_of(Verdict verdict);
/// All names, in the enum's order.
std::span<const std::string> verdict_names();
/// Throws BadInput for an unknown name (with the nearest one).
Verdict verdict_named(std::string_view name);

/// The exit code that a verdict asks for.
ExitCode exit_code_of(Verdict verdict);

}  // namespace shardproof::harness
