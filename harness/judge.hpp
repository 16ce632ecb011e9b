// SPDX-License-Identifier: Apache-2.0
// Compares what a training run shows with what the oracle computes, step by step.
//
// In `exact` every bit must agree. In `f64` and `native` a step is judged from where the candidate stood before it, so
// that no difference is carried on (what Adam makes of a gradient that is noise would be in every later step).
//
// Loss, gradients, norm and clip factor are judged by the yardstick. With e = max|oracle(float) - oracle(double)| of
// the tensor and the step, the bound is 8 (e 2^-29 + 2^-53 max|tensor|) in f64 and 8 (e + 2^-24 max|tensor|) in native.
// One draw of float's error says little about a tensor of few elements: e is the greatest of 16, the others from
// parameters that are each moved by one unit in the last place at most. Loss and norm are sums in double in float's
// oracle too, so e does not hold their error: they are allowed n 2^-53 of themselves more, the bound of n terms of one
// sign. A key bias has the gradient zero, for the softmax does not see what all keys share; what is left is the
// rounding of terms that cancel, which float's draws need not show at all (where the softmax saturates, float's terms
// are zero). Its bound is 8 unit roundoffs of the model's greatest gradient entry at least. The same holds where all of
// a tensor's draws are zero. Where numbers are subnormal, every term of an element's sums may be off by the smallest
// one.
//
// Parameters and state are judged by the update alone: the oracle's update of the candidate's own parameters, state,
// gradients and clip factor, within the bound of judge_update.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verdict.hpp"
#include "impl/engine/observation.hpp"
#include "kernels/core/observable.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

/// What a run must have shown at least once, or its verdict is mistrusted: its input could not have revealed the fault
/// that the case is there for.
enum class Shown : std::uint8_t {
  gradient,    ///< a gradient that is not all zero
  clip_bound,  ///< a step whose clip factor was below 1
  clip_idle,   ///< a step with clipping on whose clip factor was 1
  no_label,    ///< a step skipped because it had no label
  overflow,    ///< a step skipped for overflow, or for a gradient that is not finite
  any,         ///< a gradient that is not all zero, or a step skipped
};
std::string_view name_of(Shown shown);
/// Throws BadInput for an unknown name.
Shown shown_of(std::string_view name);

struct JudgeOptions {
  std::int64_t steps = 3;            ///< fewer steps than these is an error
  const plan::Plan* plan = nullptr;  ///< of several ranks, to name those that hold what is wrong; outlives the judge
  std::vector<Shown> shows = {Shown::gradient};
};

/// The first observable that differs, in the order: step; skipped, loss, gradients in backward order, norm, clip,
/// parameters, state; where none does, the first copy on some rank that differs from its primary holder's.
struct Divergence {
  std::int64_t step = 0;
  Observed kind = Observed::loss;
  std::string name;          ///< of the tensor; the kind's name for scalars
  std::string problem;       ///< not empty: missing, doubled, of other dims, ...; there are no values then
  bool of_copies = false;    ///< a copy differs from its primary holder's
  std::int64_t index = 0;    ///< of the element that is farthest off
  std::optional<Rank> rank;  ///< on several ranks: the element's primary holder, or the holder of a wrong copy
  double candidate = 0, oracle = 0, error = 0, bound = 0;
  std::int64_t outside = 0;  ///< elements of this tensor outside their bounds
  std::int64_t tensors = 0;  ///< of the same kind and step that differ, of ...
  std::int64_t of = 0;
  std::optional<double> ratio;     ///< candidate = ratio x oracle on
  std::int64_t ratio_tensors = 0;  ///< so many of the tensors that differ
  std::string ratio_means = {};    ///< "doubled, dp is 2"; empty where nothing is known
};
/// One sentence.
std::string print(const Divergence& divergence);

struct Judgement {
  Verdict verdict = Verdict::error;
  std::string reason;         ///< one sentence; empty when it passed
  std::int64_t steps = 0;     ///< judged
  std::int64_t compared = 0;  ///< elements
  std::string digest;         ///< of the candidate's observables; "" when they are no steps
  double worst = 0;           ///< greatest error over bound of what is judged by the yardstick
  std::string worst_name;     ///< where that was: "step 2: gradient of final_norm.bias"
  std::optional<Divergence> divergence;
};

class Judge {
 public:
  /// Throws BadInput for an illegal workload.
  Judge(const workload::Workload& workload, Track track, JudgeOptions options = {});
  ~Judge();

  /// One step: the batch that the candidate was given and everything observable after it, and where its ranks' copies
  /// of that differ. Steps come in order. Throws Interrupted, also between the oracle's own steps.
  void step(const workload::Batch& batch, const engine::Observation& candidate);

  /// The verdict over all steps.
  Judgement finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardproof::harness
