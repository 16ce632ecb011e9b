// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/parameter_store.hpp"

#include <algorithm>

#include "kernels/core/errors.hpp"

namespace shardproof::engine {

void upload_rounded(Queue& queue, const Tensor& tensor, const std::vector<double>& values) {
  dispatch(tensor.dtype(), [&]<class S>(S) {
    std::vector<S> rounded(values.size());
    std::ranges::transform(values, rounded.begin(), [](double v) { return round_to<S>(static_cast<Real<S>>(v)); });
    upload<S>(queue, tensor, rounded);
  });
}

ParameterStore::ParameterStore(Queue& queue, const workload::Workload& workload, Track track,
                               const step::Optimizer& optimizer) {
  for (const auto& p : workload::parameters(workload)) {
    ParameterSlot slot{.parameter = p, .value = {}, .gradient = {}, .state = {}};
    slot.value = Tensor(queue, {p.name, scalar_of(track), p.dims, Category::parameter});
    upload_rounded(queue, slot.value, workload::initial_values(workload, p));
    if (p.trainable) {
      slot.gradient = Accumulator(queue, {p.name + ".gradient", scalar_of(track), p.dims, Category::gradient});
      for (const auto state : optimizer.states) {
        const auto name = p.name + "." + std::string(state);
        zero(queue,
             slot.state.emplace_back(queue, TensorSpec{name, state_of(track), p.dims, Category::optimizer_state}));
      }
    }
    slots_.push_back(std::move(slot));
  }
}

ParameterSlot& ParameterStore::operator[](std::string_view name) {
  const auto at = std::ranges::find_if(slots_, [&](const auto& s) { return s.parameter.name == name; });
  if (at == slots_.end()) throw InternalError("no parameter is named '" + std::string(name) + "'");
  return *at;
}

}  // namespace shardproof::engine
