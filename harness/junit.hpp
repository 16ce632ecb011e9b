// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "harness/verdict.hpp"

namespace shardproof::harness {

/// One finished case, as summaries show it.
struct Ended {
  std::string case_text, reason, rerun;
  Verdict verdict = Verdict::error;
  double seconds = 0;
};

/// The cases as JUnit XML. fail, mistrusted and inconclusive are failures; error is an error; unsupported and skipped
/// are skipped.
std::string junit(const std::vector<Ended>& cases);

}  // namespace shardproof::harness
