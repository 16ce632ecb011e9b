// SPDX-License-Identifier: Apache-2.0
// A rank's way through a schedule without a flush: the batches that are under way, and which version of its weights
// each forward reads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "impl/plan/plan.hpp"
#include "kernels/core/wide_total.hpp"
#include "suites/workload/batch.hpp"

namespace shardproof::engine {

class StaleFeed {
 public:
  struct Step {
    std::int64_t number = 0;             ///< from 1
    workload::Batch batch = {};          ///< empty once the stage has made its update
    std::optional<WideTotal> loss = {};  ///< none until the rank has met the step
    std::int64_t labels = 0;
    double factor = 0;  ///< loss scale over labels
  };

  /// The plan outlives it. Throws NotSupported for a rank that holds several stages.
  StaleFeed(const plan::Plan& plan, std::int64_t pp, std::function<workload::Batch(std::int64_t step)> batches);

  /// By its number.
  Step& step(std::int64_t number);
  /// The step that a microbatch is a part of.
  std::int64_t step_of(std::int64_t microbatch) const { return microbatch / plan_.strategy.microbatches + 1; }
  /// The numbers of the steps that the update behind a microbatch is of.
  plan::Range steps_of_update(std::int64_t microbatch) const;
  /// That the forward of the microbatch reads.
  std::int64_t version(std::int64_t microbatch) const { return read_by_forward_.at(microbatch); }
  /// The next ones, up to the end of a step.
  std::span<const plan::Action> next_actions(std::int64_t step) const;
  /// The first of them has run. Behind an update the batches of its steps are dropped.
  void done();
  /// Whether an action to come reads the version.
  bool is_read(std::int64_t version) const;
  bool has_ended() const { return at_ == actions().size(); }

 private:
  const std::vector<plan::Action>& actions() const { return plan_.actions(pp_); }

  const plan::Plan& plan_;
  const std::int64_t pp_;
  const std::function<workload::Batch(std::int64_t step)> batches_;
  std::map<std::int64_t, std::int64_t> read_by_forward_;  // by microbatch
  std::map<std::int64_t, std::size_t> last_reader_;       // by version: place among the actions
  std::int64_t per_update_ = 1;                           // microbatches
  std::size_t at_ = 0;
  std::deque<Step> steps_;
};

}  // namespace shardproof::engine
