// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "impl/comm/communicator.hpp"

namespace shardproof::step {

/// What a tensor group exchanges around linear maps whose weights are cut: where a rank has a part of a sum, the parts
/// are joined before anything else is done with it. The slices themselves are data (plan::Layout).
class LinearSplit {
 public:
  virtual ~LinearSplit() = default;
  /// Whether this rank's sums are parts.
  virtual bool cut() const = 0;
  /// Whether this rank adds what a joined sum must hold once: a bias, a position embedding, a loss.
  virtual bool first() const = 0;
  /// In place: the group's total of an unfinished sum.
  virtual void join(Queue& queue, const Accumulator& sum, std::string_view purpose) = 0;
  /// In place: the group's total or greatest, element by element.
  virtual void join(Queue& queue, const Tensor& values, comm::Operator op, std::string_view purpose) = 0;
};

struct LinearSplitTechnique {
  std::string_view name, paper;
  std::unique_ptr<LinearSplit> (*make)(comm::Communicator tensor_group);
};
/// All, in the order of impl/tensor_parallel/CMakeLists.txt (generated).
std::span<const LinearSplitTechnique* const> linear_splits();

}  // namespace shardproof::step
