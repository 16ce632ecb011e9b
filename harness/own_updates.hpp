// SPDX-License-Identifier: Apache-2.0
// The optimizer in double, applied to a candidate's own gradients.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/judge_expectation.hpp"
#include "harness/judge_yardstick.hpp"
#include "reference/oracle.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

/// What a step's parameters and state must be, from the candidate's parameters before it and all its gradients so far.
/// Where the candidate stood in state is not asked: state is computed from its gradients, and its roundings add up.
class OwnUpdates {
 public:
  OwnUpdates(const workload::Workload& workload, const Precision& precision);

  using Tensors = std::map<std::string, std::vector<double>>;

  /// One update from the gradients. clip_error: relative error of the clip factor. Bounds by observable.
  void update(std::int64_t step, const Tensors& gradients, double clip, double clip_error);
  /// A step that was skipped.
  void keep(std::int64_t step);
  const std::vector<Observable>& expected() const { return expected_; }
  const std::vector<double>& bounds(const ObservableKey& key) const { return bounds_.at(key); }
  /// The candidate's parameters are where the next step starts.
  void advance(const std::string& parameter, std::vector<double> values);

 private:
  std::vector<double> bounds_of_start(const std::string& parameter) const;

  workload::Workload workload_;
  Precision precision_;
  std::vector<workload::Parameter> parameters_;
  std::unique_ptr<reference::Oracle> oracle_;
  Tensors before_;
  std::map<ObservableKey, std::vector<double>> state_;       // of the oracle
  std::map<ObservableKey, std::vector<double>> magnitudes_;  // sums of the magnitudes of the state's terms
  std::int64_t taken_ = 0;
  double clip_error_ = 0;  // greatest so far
  bool started_ = false;
  std::vector<Observable> expected_;
  std::map<ObservableKey, std::vector<double>> bounds_;
};

}  // namespace shardproof::harness
