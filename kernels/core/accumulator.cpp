// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/accumulator.hpp"

#include <algorithm>
#include <utility>

#include "kernels/core/errors.hpp"

namespace shardproof {

namespace {

/// Half of the range leaves room for the rounding of the bound itself. False for a NaN.
bool fits_one_lane(double bound) { return bound < 0x1p21; }

// Of an exchange: 2^10 low lanes of 53 bits stay below 2^63.
constexpr int low_bits = 53;
constexpr std::int64_t low_mask = (std::int64_t{1} << low_bits) - 1;

}  // namespace

Accumulator::Accumulator(Queue& queue, TensorSpec spec) : state_(std::make_shared<State>()) {
  state_->low = Tensor(queue, std::move(spec));
  restart(queue);
}

void Accumulator::restart(Queue& queue) {
  // Zeros of f64 and f32 are not written before somebody adds: a product that is the first assigns instead. Those of
  // Fixed are, and take the tensor's flag down.
  const bool is_fixed = dtype() == Dtype::fixed;
  if (is_fixed) zero(queue, state_->low);
  queue.submit("accumulator_restart", [state = state_, is_fixed](KernelScope&) {
    state->high = Tensor();
    state->bound = 0;
    state->finished = false;
    state->blank = !is_fixed;
  });
}

Tensor Accumulator::finish(Queue& queue) {
  queue.submit("accumulator_finish", [state = state_](KernelScope& scope) {
    state->finished = true;
    state->write_blank(scope);
    if (!state->high) return;
    auto* low = scope.accumulate<Fixed>(state->low);
    const auto* high = scope.read<std::int64_t>(state->high);
    for (std::int64_t i = 0; i < state->low.elements(); ++i) {
      const bool one_lane = high[i] == (low[i].raw >> 63);
      if (one_lane && in_range(low[i])) continue;
      low[i].raw = fixed_invalid;
      scope.raise_overflow();
    }
    state->high = Tensor();
  });
  return state_->low;
}

std::int64_t* Accumulator::State::add_lane(KernelScope& scope) {
  // Workspace: what a gradient or an activation takes is not a matter of its values.
  high = scope.allocate({low.name() + ".high", Dtype::i64, low.dims(), Category::workspace});
  return scope.write<std::int64_t>(high);
}

void Accumulator::State::write_blank(KernelScope& scope) {
  if (!std::exchange(blank, false)) return;
  dispatch(low.dtype(), [&]<class S>(S) { std::fill_n(scope.accumulate<S>(low), low.elements(), S{}); });
}

void Accumulator::State::require_unfinished() const {
  if (finished) throw InternalError("accumulator: '" + low.name() + "' is finished; restart it before adding");
}

template <class S>
AccumulatorView<S>::AccumulatorView(KernelScope& scope, const Accumulator& accumulator, double bound, bool assigns)
    : low_(scope.accumulate<S>(accumulator.state_->low)) {
  accumulator.state_->require_unfinished();
  if (assigns) blank_ = std::exchange(accumulator.state_->blank, false);
  accumulator.state_->write_blank(scope);
  if constexpr (std::is_same_v<S, Fixed>) {
    auto& state = *accumulator.state_;
    state.bound += bound;
    if (!state.high && !fits_one_lane(state.bound)) {
      auto* high = state.add_lane(scope);
      for (std::int64_t i = 0; i < state.low.elements(); ++i) high[i] = low_[i].raw >> 63;
    }
    if (state.high) high_ = scope.accumulate<std::int64_t>(state.high);
  }
}

template class AccumulatorView<Fixed>;
template class AccumulatorView<double>;
template class AccumulatorView<float>;

void add_window(Queue& queue, const Accumulator& from, const Window& source, const Accumulator& to,
                const Window& target, std::int64_t rows, std::int64_t columns) {
  if (source.first < 0 || target.first < 0 || source.end(rows, columns) > from.elements() ||
      target.end(rows, columns) > to.elements()) {
    throw InternalError("add_window: outside of '" + from.state_->low.name() + "' or '" + to.state_->low.name() + "'");
  }
  dispatch(from.dtype(), [&]<class S>(S) {
    queue.submit("add_window", [from = from.state_, source, to, target, rows, columns](KernelScope& scope) {
      from->require_unfinished();
      from->write_blank(scope);
      const auto* const low = scope.accumulate<S>(from->low);
      const auto* const high = from->high ? scope.accumulate<std::int64_t>(from->high) : nullptr;
      AccumulatorView<S> view(scope, to, from->bound);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const auto i = source.first + r * source.stride + c;
          Sum<S> value{};
          if constexpr (std::is_same_v<S, Fixed>) {
            const std::int64_t top = high != nullptr ? high[i] : low[i].raw >> 63;
            value.raw =
                static_cast<uint128>(static_cast<std::uint64_t>(top)) << 64 | static_cast<std::uint64_t>(low[i].raw);
          } else {
            value = low[i];
          }
          view.add(target.first + r * target.stride + c, value);
        }
      }
    });
  });
}

AccumulatorExchange::AccumulatorExchange(KernelScope& scope, const Accumulator& accumulator)
    : scope_(scope), state_(accumulator.state_) {
  state_->require_unfinished();
  state_->write_blank(scope);
}

Tensor AccumulatorExchange::begin(double total_bound) {
  const auto& low = state_->low;
  if (low.dtype() != Dtype::fixed) return low;
  state_->bound = total_bound;
  if (fits_one_lane(total_bound)) return low;
  const auto n = low.elements();
  lanes_ = scope_.allocate({low.name() + ".lanes", Dtype::i64, {2, n}, Category::communication});
  auto* lane0 = scope_.write<std::int64_t>(lanes_);
  auto* lane1 = lane0 + n;
  const auto* raw = scope_.accumulate<Fixed>(low);
  const auto* high = state_->high ? scope_.accumulate<std::int64_t>(state_->high) : nullptr;
  for (std::int64_t i = 0; i < n; ++i) {
    lane0[i] = raw[i].raw & low_mask;
    const auto top = static_cast<std::uint64_t>(high != nullptr ? high[i] : raw[i].raw >> 63);
    lane1[i] = static_cast<std::int64_t>(top << (64 - low_bits) | static_cast<std::uint64_t>(raw[i].raw) >> low_bits);
  }
  return lanes_;
}

void AccumulatorExchange::end() {
  if (!lanes_) return;
  const auto n = state_->low.elements();
  const auto* lane0 = scope_.read<std::int64_t>(lanes_);
  const auto* lane1 = lane0 + n;
  auto* raw = scope_.accumulate<Fixed>(state_->low);
  auto* high = state_->high ? scope_.accumulate<std::int64_t>(state_->high) : state_->add_lane(scope_);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto total = (static_cast<uint128>(static_cast<int128>(lane1[i])) << low_bits) +
                       static_cast<uint128>(static_cast<int128>(lane0[i]));
    raw[i].raw = static_cast<std::int64_t>(static_cast<std::uint64_t>(total));
    high[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(total >> 64));
  }
  lanes_ = Tensor();
}

}  // namespace shardproof
