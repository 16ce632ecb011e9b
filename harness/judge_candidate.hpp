// SPDX-License-Identifier: Apache-2.0
// Compares what another framework trained (candidate.hpp) with an exported oracle, every step whole.
//
// Loss, gradients, norm and clip factor are held against the files of the export, within the bound of
// judge_yardstick.hpp by the yardstick that the export stores: both train on their own, and so did the draws of the
// yardstick. Parameters and state are judged by the update alone: the optimizer in double applied to the candidate's
// own gradients, from the candidate's own parameters before the step, within judge_update.hpp's bounds.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate_map.hpp"
#include "harness/export_reader.hpp"
#include "harness/judge.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/dtype.hpp"

namespace shardproof::harness {

/// One observable of one step.
struct TensorResult {
  std::int64_t step = 0;
  Observed kind = Observed::loss;
  std::string name = {};
  std::int64_t elements = 0;
  Divergence found = {};  ///< where it differs
  bool failed = false;
  double worst = 0;             ///< greatest error over bound
  std::optional<double> ratio;  ///< candidate = ratio x oracle, where it differs
};

struct CandidateJudgement {
  Verdict verdict = Verdict::error;
  std::string reason;  ///< one sentence; empty when it passed
  Dtype precision = Dtype::f64;
  plan::Strategy strategy;               ///< as given, or as the candidate's metadata name it
  std::int64_t compared = 0;             ///< elements
  std::vector<TensorResult> results;     ///< in the order in which they are judged
  std::optional<Divergence> divergence;  ///< the first that differs
  std::vector<std::string> extra;        ///< names in the candidate's files that are none of the oracle's
};

struct CandidateOptions {
  std::optional<Dtype> precision = {};  ///< none: the coarsest type of the candidate's gradients and parameters
  std::optional<plan::Strategy> strategy = {};
};

/// Throws BadInput for what cannot be read, NotSupported for an oracle without the yardstick of the precision, and
/// Interrupted. What the candidate lacks or has in another shape is a failure.
CandidateJudgement judge_candidate(const std::filesystem::path& oracle, const ExportAbout& about,
                                   const std::filesystem::path& candidate, const CandidateMap& map,
                                   const CandidateOptions& options);

/// What the constant says of the sizes: "doubled, dp is 2", "multiplied, dp is 3", "halved, tp is 2"; "" where none
/// equals it.
std::string meaning_of(double ratio, const plan::Strategy& strategy);

}  // namespace shardproof::harness
