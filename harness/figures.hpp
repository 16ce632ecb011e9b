// SPDX-License-Identifier: Apache-2.0
// What a finished training says about speed and learning.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/training.hpp"

namespace shardproof::harness {

/// Lower quartile, median, upper quartile, between order statistics by linear interpolation. Precondition: not empty.
std::array<double, 3> quartiles(std::vector<double> values);

/// Valid tokens per second of the steps that were taken, but the first (which also warms up), and of
/// most_recorded_steps at most: those that are replayed. None if there are none. Where ranks take steps in turn, rank 0
/// has not each of them: rates are of whole turns, and so is what they leave out.
std::optional<std::array<double, 3>> tokens_per_second(const workload::Workload& workload, const Trained& trained);

/// Mean of the losses of the last (at most 100) steps that have one, weighted by their tokens.
struct Learning {
  double first_loss = 0, last_loss = 0, mean = 0;
  std::int64_t steps = 0, tokens = 0;  ///< that the mean is over
  /// Markov source only: its entropy, below which no honest mean stays, and the standard error of `mean` that comes
  /// from the source alone.
  std::optional<double> floor = {}, standard_error = {};

  /// The mean lies farther below the floor than chance puts it: the model has seen its labels. The labels' information
  /// under the source stays within 4 standard errors of the floor. An honest model's likelihood over the source's is a
  /// martingale that starts at 1, so it exceeds e^20 with a probability below e^-20 (Ville 1939): 20 nats in all.
  bool cheats() const { return floor && mean < *floor - 4 * *standard_error - 20.0 / static_cast<double>(tokens); }
};
/// None if no step has a loss, or one of the last is not finite.
std::optional<Learning> learning(const workload::Workload& workload, std::span<const engine::StepResult> steps);

/// What old weights cost: a stale program beside the synchronous one on the same batches.
struct LearningCost {
  double synchronous_mean = 0;  ///< of the synchronous losses, as Learning::mean
  std::int64_t tokens = 0;      ///< that each has seen
  /// After which the stale losses' mean over as many steps first was no greater; none where it never was.
  std::optional<std::int64_t> tokens_to_reach = {};
};
/// None where one of them has no loss, or stopped for it was not finite.
std::optional<LearningCost> learning_cost(const workload::Workload& workload, std::span<const engine::StepResult> stale,
                                          std::span<const engine::StepResult> synchronous);

}  // namespace shardproof::harness
