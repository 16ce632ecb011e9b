// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/accumulator.hpp"

#include <utility>

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
  });
}

Tensor Accumulator::finish(Queue& queue) {
  queue.submit("accumulator_finish", [state = state_](KernelScope& scope) {
    if (!state->high) return;
    auto* low = scope.update<Fixed>(state->low);
    const auto* high = scope.read<std::int64_t>(state->high);
    for (std::int64_t i = 0; i < state->low.elements(); ++i) {
      if (high[i] != (low[i].raw >> 63)) low[i].raw = fixed_invalid;
    }
    state->high = Tensor();
  });
  return state_->low;
}

template <class S>
AccumulatorView<S>::AccumulatorView(KernelScope& scope, const Accumulator& accumulator, double bound)
    : low_(scope.accumulate<S>(accumulator.state_->low)) {
  if constexpr (std::is_same_v<S, Fixed>) {
    auto& state = *accumulator.state_;
    state.bound += bound;
    // Written so that a NaN bound widens as well.
    if (!state.high && !(state.bound < 0x1p22)) {
      state.high = scope.allocate({state.low.name() + ".high", Dtype::i64, state.low.dims(), state.low.category()});
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
