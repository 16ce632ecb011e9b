// SPDX-License-Identifier: Apache-2.0
// Whether this program finds what it is for: the faults of suites/faults.json that the communicator can plant, each
// over the same few cases.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case.hpp"
#include "harness/disturbance.hpp"

namespace shardproof::harness {

/// suites/faults.json, compiled in.
std::string_view faults_file();

/// A fault of the communicator, and by what it must be found first.
struct InjectedFault {
  std::string id, text;
  std::string inject;                    ///< as --inject takes it
  std::vector<std::string> observables;  ///< patterns: "gradient of final_norm.*", "loss", "replica parameter of *"
  std::int64_t step = 0;                 ///< 0: any
};
/// The file's `inject` entries. Throws BadInput.
std::vector<InjectedFault> injected_faults(std::string_view json_text);

/// Several ranks on every axis, tied and shared parameters, uneven parts, label smoothing, dropout, clipping.
std::vector<Case> selftest_cases();

/// What a case found wrong first. `observable` is empty where it found nothing or made no call that was meant, and
/// "error: ..." where it did not end.
struct Finding {
  std::int64_t step = 0;
  std::string observable;
};
/// Trains and judges the case while the communicator is so disturbed.
Finding judged(const Case& value, const Disturbance& disturbance);

struct Outcome {
  bool caught = false, expected = false;
  Finding finding;
  std::string case_text;  ///< that found it
};
/// Runs the cases one by one until one finds something wrong. Throws BadInput for an injection that does not parse.
Outcome plant(const InjectedFault& fault, std::span<const Case> cases, Disturbance disturbance = {});

}  // namespace shardproof::harness
