// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/judge_candidate.hpp"

namespace shardproof::harness {

/// What `judge` prints: what differs, in the order in which it is judged (the first 12), then each kind's count and
/// greatest error over bound, and tensors that are none of the oracle's.
std::string report(const CandidateJudgement& judgement);

/// One line of CSV for each observable of each step.
std::string csv(const CandidateJudgement& judgement);

}  // namespace shardproof::harness
