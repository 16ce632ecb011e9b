// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "impl/plan/plan.hpp"
#include "impl/step/optimizer.hpp"
#include "kernels/core/accumulator.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::engine {

/// What a rank holds of one parameter, with everything that belongs to it. A frozen one has neither gradient nor state.
struct ParameterSlot {
  const plan::ParameterLayout* layout;  ///< of the plan, which outlives the slot
  Tensor value;
  Accumulator gradient;
  std::vector<Tensor> state;
  bool is_primary = false;  ///< its copy counts, of it what the tp coordinate owns

  std::int64_t version = 0;  ///< updates that `value` has had
  struct Stashed {
    std::int64_t version;
    Tensor value;
  };
  std::vector<Stashed> stash = {};  ///< older ones that are still read, ascending

  const workload::Parameter& parameter() const { return layout->parameter; }
  /// The value is about to become the next version: keeps a copy of the one that it has. Of a frozen parameter all
  /// versions are one.
  void keep_version(Queue& queue);
  /// Of the older versions, keeps those that are still read.
  void keep_versions(const std::function<bool(std::int64_t version)>& is_read);
  /// The values that a forward of this version read, for it and for all that follows from it. Throws InternalError for
  /// a version that is not kept.
  const Tensor& weights(std::int64_t wanted) const;
};

/// A rank's slices of the parameters of its stage, their gradients and optimizer state, in the order of
/// workload::parameters().
class ParameterStore {
 public:
  /// Allocates everything; values are the workload's initial ones, state is zero. The plan outlives the store.
  ParameterStore(Queue& queue, const workload::Workload& workload, Track track, const plan::Plan& plan,
                 const plan::Place& place, const step::Optimizer& optimizer);

  std::span<ParameterSlot> slots() { return slots_; }
  /// Throws InternalError for a name that this rank does not hold.
  ParameterSlot& operator[](std::string_view name);

 private:
  std::vector<ParameterSlot> slots_;
};

/// Uploads doubles, each rounded once to the tensor's dtype (q23.40, f64 or f32).
void upload_rounded(Queue& queue, const Tensor& tensor, const std::vector<double>& values);

}  // namespace shardproof::engine
