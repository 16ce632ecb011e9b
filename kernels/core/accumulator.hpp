// SPDX-License-Identifier: Apache-2.0
// A tensor whose elements are unfinished sums over several kernels: every gradient of a parameter, and the input
// gradient of a tensor with several readers. In `exact` the sum is a true total (reference/ARITHMETIC.md, section 2):
// while a running bound shows that no partial sum can leave the range, one int64 lane carries it; from then on two do.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/core/queue.hpp"
#include "kernels/core/tensor.hpp"

namespace shardproof {

/// Where rows of elements lie in a row-major array.
struct Window {
  std::int64_t first = 0;   ///< element
  std::int64_t stride = 0;  ///< elements from one row to the next
  std::int64_t end(std::int64_t rows, std::int64_t columns) const {
    return rows == 0 || columns == 0 ? 0 : first + (rows - 1) * stride + columns;
  }
};

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
  friend class AccumulatorExchange;
  friend void add_window(Queue& queue, const Accumulator& from, const Window& source, const Accumulator& to,
                         const Window& target, std::int64_t rows, std::int64_t columns);
  struct State {
    Tensor low, high;  // high: int64, exists only once the bound has failed
    double bound = 0;  // on the magnitude of every element's partial sum, as a value
    bool finished = false;
    bool blank = false;  // all zero, and not written yet; never of Fixed

    std::int64_t* add_lane(KernelScope& scope);  // the new lane's elements, unwritten
    void write_blank(KernelScope& scope);        // its zeros
    void require_unfinished() const;
  };
  std::shared_ptr<State> state_;
};

/// Unfinished sums of a window of `from` added to one of `to`: lanes and bound go along. Throws InternalError for a
/// window that does not lie inside.
void add_window(Queue& queue, const Accumulator& from, const Window& source, const Accumulator& to,
                const Window& target, std::int64_t rows, std::int64_t columns);

/// A kernel's access to an accumulator.
template <class S>
class AccumulatorView {
 public:
  /// `bound`: no element will grow by more than this in magnitude (a value, not raw; ignored but for Fixed). Throws
  /// InternalError when the accumulator is finished. `assigns`: the kernel will assign all elements, not add to them,
  /// where take_blank() says so.
  AccumulatorView(KernelScope& scope, const Accumulator& accumulator, double bound, bool assigns = false);

  /// Whether elements are zeros that nobody has written; true once, never of Fixed, nor unless the kernel said that it
  /// assigns.
  bool take_blank() { return std::exchange(blank_, false); }
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
  bool blank_ = false;
};

/// A kernel's means to replace an accumulator by its sum over ranks: sum bound() over the ranks, hand the total to
/// begin(), sum the tensor that it returns, call end(). All ranks agree on one lane or two, as all know the same total.
class AccumulatorExchange {
 public:
  /// Throws InternalError when the accumulator is finished.
  AccumulatorExchange(KernelScope& scope, const Accumulator& accumulator);

  /// Of this rank's sum, as a value. Of no meaning but for Fixed.
  double bound() const { return state_->bound; }
  /// Whether the sum's overflow flag is up: the returned tensor of begin() need not show it.
  bool overflow() const { return scope_.overflow_of(state_->low); }
  /// The accumulator's own elements where one lane can hold the total; else i64 [2, elements], a copy in lanes without
  /// carries: v = lane1 * 2^53 + lane0 with 0 <= lane0 < 2^53. Up to 1024 ranks may add theirs as plain integers; the
  /// total is then known modulo 2^117, more than 2^31 products of 2^84 each.
  Tensor begin(double total_bound);
  /// After the sum: takes the lanes back.
  void end();

 private:
  KernelScope& scope_;
  std::shared_ptr<Accumulator::State> state_;
  Tensor lanes_;
};

}  // namespace shardproof
