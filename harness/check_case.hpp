// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "harness/case.hpp"
#include "harness/disturbance.hpp"
#include "harness/environment.hpp"
#include "harness/exit_code.hpp"
#include "harness/judge.hpp"
#include "harness/record.hpp"
#include "impl/engine/tamper.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

/// Steps that a case takes whose settings do not say.
inline constexpr std::int64_t case_steps = 3;

struct Checked {
  Record record;  ///< a figure "error_over_bound" in f64 and native, "seconds" always
  ExitCode code = ExitCode::internal;
  std::string worst = {};    ///< the observable of that error
  std::string finding = {};  ///< the kind of what differs: "gradient", "copies of gradient"; "" for anything else
  bool met_no_call = false;  ///< an injection acts on no call, or on no rank, of this case
};

/// The case's workload with its settings. Throws BadInput.
workload::Workload workload_of(const Case& value);

/// As its record has it. Throws BadInput.
std::string workload_hash_of(const Case& value);

/// Of the delays, unless something else is asked for.
inline constexpr std::uint64_t standard_delays = 1;

struct CheckOptions {
  Disturbance disturbance = {.delays = standard_delays};  ///< of cases on several ranks
  engine::Tamper tamper = {};
};

/// The line that checks this case alone.
std::string rerun_of(const Case& value, std::span<const Shown> shows, const CheckOptions& options);

/// Trains every step of the case with poison on, judges each, and holds ledgers against forms. In f64 a case whose
/// contract is ROUNDED is trained again with a term dropped (dropped_term.hpp): it is mistrusted unless that fails.
/// What goes wrong is in the record: unsupported where the strategy table refuses the case, error for any exception (a
/// kernel that does not support the input included). Throws Interrupted only.
Checked check_case(const Case& value, std::span<const Shown> shows, const Environment& environment,
                   const CheckOptions& options = {});

}  // namespace shardproof::harness
