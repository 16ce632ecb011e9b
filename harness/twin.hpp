// SPDX-License-Identifier: Apache-2.0
// Parallel speed against the twin: as many independent one-rank runs at once as there are ranks, each of the whole
// model at its share of the batch. Both sides see the same machine with the same number of busy threads, so what is
// left is what spreading costs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/training.hpp"

namespace shardproof::harness {

/// The median of paired ratios, and an interval that holds the true one with a probability of at least 0.95 whatever
/// the distribution (order statistics and the binomial distribution; with fewer than 6 ratios all of them).
struct RatioInterval {
  double low = 0, median = 0, high = 0;
};
/// Precondition: not empty.
RatioInterval median_ratio(std::vector<double> ratios);

struct TwinRound {
  double run_tokens_per_second = 0, twins_tokens_per_second = 0;  ///< wall; the twins' together
  double efficiency() const { return run_tokens_per_second / twins_tokens_per_second; }
};

/// One of the twins. Throws NotSupported where a data rank's share of the batch is not a whole number of samples.
TrainingJob twin_of(const TrainingJob& job);

/// Run and twins one after the other, `rounds` times, `steps` steps each of which the first is not counted; where ranks
/// take steps in turn, whole turns and two at least, of which the first is not counted. `on_round` is called before the
/// first and after each with how many are done. Throws as twin_of does.
std::vector<TwinRound> against_twin(
    const TrainingJob& job, const workload::Corpus& corpus, std::int64_t rounds, std::int64_t steps,
    const std::function<void(std::int64_t)>& on_round = [](std::int64_t) {});

}  // namespace shardproof::harness
