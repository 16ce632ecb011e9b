// SPDX-License-Identifier: Apache-2.0
// When each gradient of a rank is final, derived from its schedule before the run.
#pragma once

#include <cstddef>
#include <vector>

#include "impl/engine/parameter_store.hpp"
#include "impl/plan/schedule.hpp"

namespace shardproof::engine {

/// A gradient is final after the last backward-weight action that touches one of its sites; that of a parameter which
/// is used nowhere, after the last action of all.
class Ready {
 public:
  /// `actions` are the rank's; gradients are counted in the order of the store's slots that have one.
  Ready(const std::vector<plan::Action>& actions, ParameterStore& store);

  /// Before the first action of a step.
  void start() { at_ = 0; }
  /// The gradients that are final once the next action, this one, has run.
  const std::vector<std::size_t>& after(const plan::Action& action);

 private:
  std::vector<plan::Action> actions_;
  std::vector<std::vector<std::size_t>> final_;  // by action
  std::size_t at_ = 0;
};

}  // namespace shardproof::engine
