// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/core/tensor.hpp"

namespace shardproof::step {

/// Which backward actions read a saved tensor: I (input gradient), W (weight gradient), or both.
enum class Readers : std::uint8_t { input = 1, weight = 2, both = 3 };

/// What a part of the model keeps between actions, by name (reference/ARITHMETIC.md, section 11). A tensor's memory is
/// freed after its last declared reader. Policies that recompute, encode or move saved tensors act on this list.
class SavedTensors {
 public:
  /// `name` is a literal.
  void keep(std::string_view name, Tensor tensor, Readers readers);
  /// Throws InternalError for a name that was never kept, or whose last reader has run.
  const Tensor& operator[](std::string_view name) const;
  /// An empty tensor where the name was never kept: what dropout leaves out.
  Tensor find(std::string_view name) const;
  /// The action has run: drops its claim, and every tensor without a reader left.
  void release_after(Readers action);
  bool empty() const { return saved_.empty(); }
  /// After the last action: throws InternalError, naming it, for a tensor whose reader has not run.
  void require_released() const;

 private:
  struct Saved {
    std::string_view name;
    Tensor tensor;
    std::uint8_t readers;
  };
  std::vector<Saved> saved_;
};

}  // namespace shardproof::step
