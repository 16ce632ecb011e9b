// SPDX-License-Identifier: Apache-2.0
#include "harness/verdict.hpp"

#include <algorithm>
#include <array>

#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {
namespace {

const std::array<std::string, 7> names = {"error",   "pass",       "fail",        "unsupported",
                                          "skipped", "mistrusted", "inconclusive"};

}  // namespace

std::string_view name_of(Verdict verdict) { return names.at(static_cast<std::size_t>(verdict)); }

std::span<const std::string> verdict_names() { return names; }

Verdict verdict_named(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw BadInput(unknown("verdict", name, names));
  return static_cast<Verdict>(found - names.begin());
}

ExitCode exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return ExitCode::pass;
    case Verdict::fail:
    case Verdict::mistrusted:
    case Verdict::skipped: return ExitCode::check_failed;
    case Verdict::unsupported: return ExitCode::usage;
    case Verdict::inconclusive: return ExitCode::inconclusive;
    case Verdict::error: break;
  }
  return ExitCode::internal;
}

}  // namespace shardproof::harness
