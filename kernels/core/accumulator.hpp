// SPDX-License-Identifier: Apache-2.0
// A tensor whose elements are unfinished sums over several kernels: every gradient of a parameter, and the input
// gradient of a tensor with several readers. In `exact` the sum is a true total (reference/ARITHMETIC.md, section 2):
// while a running bound shows that no partial sum can leave the range, one int64 lane carries it; from then on two do.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/queue.hpp"
#include "kernels/core/tensor.hpp"

namespace shardproof {

class Accumulator {
 public:
  Accumulator() = default;
  /// All elements zero.
  Accumulator(Queue& queue, TensorSpec spec);

  explicit operator bool() const { return state_ != nullptr; }
  const Dims& dims() const { return state_->low.dims(); }
  Dtype dtype() const { return state_->low.dtype(); }
  std::int64_t elements() const { return state_->low.elements(); }

  /// The finished tensor (the same memory). Out-of-range totals become fixed_invalid and raise its flag. Nothing may be
  /// added afterwards until restart().
  Tensor finish(Queue& queue);
  /// Zero again, for the next step.
  void restart(Queue& queue);

 private:
  template <class S>
  friend class AccumulatorView;
  struct State {
    Tensor low, high;  // high: int64, exists only once the bound has failed
    double bound = 0;  // on the magnitude of every element's partial sum, as a value
    bool finished = false;
  };
  std::shared_ptr<State> state_;
};

/// A kernel's access to an accumulator.
template <class S>
class AccumulatorView {
 public:
  /// `bound`: no element will grow by more than this in magnitude (a value, not raw; ignored but for Fixed). Throws
  /// InternalError when the accumulator is finished.
  AccumulatorView(KernelScope& scope, const Accumulator& accumulator, double bound);

  /// Whether elements have a second lane: then add() is the only way in.
  bool wide() const { return high_ != nullptr; }
  S* data() { return low_; }
  void add(std::int64_t i, Sum<S> value) {
    if constexpr (std::is_same_v<S, Fixed>) {
      auto& low = low_[i].raw;
      if (high_ == nullptr) {
        low += static_cast<std::int64_t>(value.raw);
        return;
      }
      const uint128 total =
          (static_cast<uint128>(static_cast<std::uint64_t>(high_[i])) << 64 | static_cast<std::uint64_t>(low)) +
          static_cast<uint128>(value.raw);
      low = static_cast<std::int64_t>(static_cast<std::uint64_t>(total));
      high_[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(total >> 64));
    } else {
      low_[i] += value;
    }
  }

 private:
  S* low_;
  std::int64_t* high_ = nullptr;
};

}  // namespace shardproof
