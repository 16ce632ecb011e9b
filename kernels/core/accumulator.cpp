// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/accumulator.hpp"

#include <utility>

#include "kernels/core/errors.hpp"

namespace shardproof {

Accumulator::Accumulator(Queue& queue, TensorSpec spec) : state_(std::make_shared<State>()) {
  state_->low = Tensor(queue, std::move(spec));
  zero(queue, state_->low);
}

void Accumulator::restart(Queue& queue) {
  zero(queue, state_->low);
  queue.submit("accumulator_restart", [state = state_](KernelScope&) {
    state->high = Tensor();
    state->bound = 0;
    state->finished = false;
  });
}

Tensor Accumulator::finish(Queue& queue) {
  queue.submit("accumulator_finish", [state = state_](KernelScope& scope) {
    state->finished = true;
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

template <class S>
AccumulatorView<S>::AccumulatorView(KernelScope& scope, const Accumulator& accumulator, double bound)
    : low_(scope.accumulate<S>(accumulator.state_->low)) {
  if (accumulator.state_->finished) {
    throw InternalError("accumulator: '" + accumulator.state_->low.name() + "' is finished; restart it before adding");
  }
  if constexpr (std::is_same_v<S, Fixed>) {
    auto& state = *accumulator.state_;
    state.bound += bound;
    // Half of the range leaves room for the rounding of the bound itself; a NaN widens as well.
    if (!state.high && !(state.bound < 0x1p21)) {
      // Workspace: what a gradient or an activation takes is not a matter of its values.
      state.high = scope.allocate({state.low.name() + ".high", Dtype::i64, state.low.dims(), Category::workspace});
      auto* high = scope.write<std::int64_t>(state.high);
      for (std::int64_t i = 0; i < state.low.elements(); ++i) high[i] = low_[i].raw >> 63;
    }
    if (state.high) high_ = scope.accumulate<std::int64_t>(state.high);
  }
}

template class AccumulatorView<Fixed>;
template class AccumulatorView<double>;
template class AccumulatorView<float>;

}  // namespace shardproof
