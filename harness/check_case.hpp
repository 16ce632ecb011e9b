// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "harness/case.hpp"
#include "harness/environment.hpp"
#include "harness/exit_code.hpp"
#include "harness/judge.hpp"
#include "harness/record.hpp"

namespace shardproof::harness {

/// Steps that a case takes whose settings do not say.
inline constexpr std::int64_t case_steps = 3;

struct Checked {
  Record record;  ///< a figure "error_over_bound" in f64 and native, "seconds" always
  ExitCode code = ExitCode::internal;
  std::string worst;  ///< the observable of that error
};

/// Trains every step of the case with poison on, judges each, and holds ledgers against forms. What goes wrong is in
/// the record: unsupported for a refused strategy, error for any other exception. Throws Interrupted only.
Checked check_case(const Case& value, std::span<const Shown> shows, const Environment& environment);

}  // namespace shardproof::harness
