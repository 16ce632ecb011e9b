// SPDX-License-Identifier: Apache-2.0
// What the oracle says that a step must show, and how far from it the candidate may be.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge_compare.hpp"
#include "harness/judge_yardstick.hpp"
#include "kernels/core/observable.hpp"
#include "kernels/core/track.hpp"
#include "reference/oracle.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

using ObservableKey = std::pair<Observed, std::string>;
using ObservableIndex = std::map<ObservableKey, const Observable*>;
/// Of several with the same key, the first.
ObservableIndex index_of(const std::vector<Observable>& observables);

/// Parameter-shaped: of gradients, parameters and state.
bool is_tensor(Observed kind);
/// "gradient of final_norm.bias", "loss"
std::string described(const ObservableKey& key);

/// The only element of an observable; NaN when there is none.
double scalar_of(const Observable& observable);

/// Names of the states that the workload's optimizer keeps for a parameter, in the order in which it reads them.
std::vector<std::string> state_names(const workload::Workload& workload, const workload::Parameter& parameter);

/// Of a step with the batch, of which the oracle shows these.
Yardstick yardstick_of(const workload::Workload& workload, const Precision& precision, const workload::Batch& batch,
                       const std::vector<Observable>& oracle);

class Expectation {
 public:
  Expectation(const workload::Workload& workload, Track track);

  /// The oracle's step. In f64 and native it starts from where the candidate stood (see advance) and covers loss,
  /// gradients, norm, clip and skipped. False when float shows no yardstick: no_yardstick() says why. Like compare and
  /// update it throws Interrupted.
  bool step(const workload::Batch& batch);
  /// f64 and native: parameters and state, as the update makes them from what the candidate showed.
  void update(std::int64_t step, const ObservableIndex& candidate);
  /// The candidate's parameters and state become the start of the next step.
  void advance(const ObservableIndex& candidate);

  const std::vector<Observable>& observables() const { return observables_; }
  /// Draws further errors of float where the candidate is not well inside, all of them before it is outside.
  Comparison compare(const Observable& candidate, const Observable& oracle);
  /// How far a multiple of the oracle's tensor may be from a multiple and still be called one.
  double slack(const Observable& oracle) const;
  const std::string& no_yardstick() const { return no_yardstick_; }

 private:
  bool draw();
  void bound_by_yardstick();
  void expect_no_change(std::int64_t step, const workload::Parameter& parameter);
  /// Of the steps that the update of the parameter at the end of this one is of; 0: there is none.
  std::int64_t labels_of_update(const workload::Parameter& parameter, std::int64_t step) const;

  workload::Workload workload_;
  Track track_;
  std::vector<workload::Parameter> parameters_;
  std::unique_ptr<reference::Oracle> oracle_, rough_, updater_;  // the last two: not in exact
  std::map<ObservableKey, std::vector<double>> before_;          // the candidate's parameters and state; not in exact
  std::map<std::string, std::int64_t> taken_;                    // updates, by parameter
  std::map<std::int64_t, std::int64_t> labels_;                  // by step
  workload::Batch batch_;
  std::vector<Observable> observables_;
  std::int64_t draws_ = 0;                 // of this step
  std::map<ObservableKey, double> error_;  // greatest of the draws
  std::map<ObservableKey, std::vector<double>> bounds_;
  std::string no_yardstick_;
};

}  // namespace shardproof::harness
