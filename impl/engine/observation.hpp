// SPDX-License-Identifier: Apache-2.0
// Gathers what every rank holds of a step's observables on rank 0, puts the logical tensors together from their primary
// holders, and compares every other copy with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/engine/parameter_store.hpp"
#include "impl/plan/plan.hpp"
#include "kernels/core/observable.hpp"

namespace shardproof::engine {

enum class Skipped : std::int64_t { no = 0, non_finite = 1, no_label = 2 };

/// The scalars of one step, as every rank knows them.
struct Scalars {
  std::int64_t step = 0;
  std::optional<double> loss;  ///< none without labels, or when skipped as non-finite
  double norm = 0, clip_factor = 1;
  Skipped skipped = Skipped::no;
};

/// A rank's copy that is not what the primary holder has.
struct ReplicaDifference {
  std::int64_t step = 0;
  Observed kind = Observed::loss;
  std::string name;
  Rank rank{0};
  std::int64_t index = 0;  ///< in the logical tensor, of the first element that differs
  double value = 0, primary = 0;
};
/// One sentence.
std::string print(const ReplicaDifference& difference);

struct Observation {
  std::vector<Observable> observables;  ///< in the order of the digest; empty on all ranks but 0
  std::vector<ReplicaDifference> differences;
};

struct Observer {
  Queue& queue;
  comm::Communicator& world;
  const plan::Plan& plan;
  const step::Optimizer& optimizer;
  Track track;

  /// Everything that the step shows. All ranks must call it; what is observed may be written as soon as it has
  /// returned.
  Observation all(ParameterStore& store, const Scalars& scalars);
  /// Parameters only.
  Observation parameters(ParameterStore& store, std::int64_t step);
};

}  // namespace shardproof::engine
