// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/parameter_store.hpp"

#include <algorithm>
#include <string>

#include "impl/engine/slice.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::engine {

namespace {

std::vector<double> held_values(const workload::Workload& workload, const plan::ParameterLayout& layout,
                                std::int64_t tp) {
  auto values = workload::initial_values(workload, layout.parameter);
  if (layout.split_dim < 0) return values;
  return slice_of(values, layout.parameter.dims, layout.split_dim, layout.held.at(static_cast<std::size_t>(tp)));
}

}  // namespace

void upload_rounded(Queue& queue, const Tensor& tensor, const std::vector<double>& values) {
  dispatch(tensor.dtype(), [&]<class S>(S) {
    std::vector<S> rounded(values.size());
    std::ranges::transform(values, rounded.begin(), [](double v) { return round_to<S>(static_cast<Real<S>>(v)); });
    upload<S>(queue, tensor, rounded);
  });
}

ParameterStore::ParameterStore(Queue& queue, const workload::Workload& workload, Track track, const plan::Plan& plan,
                               const plan::Place& place, const step::Optimizer& optimizer) {
  for (const auto& layout : plan.layout.parameters) {
    const auto holders = plan.holders(layout);
    if (std::ranges::find(holders, place.pp) == holders.end()) continue;
    const auto& p = layout.parameter;
    const Dims dims = layout.held_dims(place.tp);
    ParameterSlot slot{.layout = &layout, .value = {}, .gradient = {}, .state = {}};
    slot.is_primary = plan::is_primary(plan, layout, place);
    slot.value = Tensor(queue, {p.name, scalar_of(track), dims, Category::parameter});
    upload_rounded(queue, slot.value, held_values(workload, layout, place.tp));
    if (p.trainable) {
      slot.gradient = Accumulator(queue, {p.name + ".gradient", scalar_of(track), dims, Category::gradient});
      for (const auto state : optimizer.states) {
        const auto name = p.name + "." + std::string(state);
        zero(queue, slot.state.emplace_back(queue, TensorSpec{name, state_of(track), dims, Category::optimizer_state}));
      }
    }
    slots_.push_back(std::move(slot));
  }
}

void ParameterSlot::keep_version(Queue& queue) {
  if (!gradient) return;
  const Tensor old(queue, {parameter().name + ".version", value.dtype(), value.dims(), Category::parameter});
  copy(queue, value, old);
  stash.push_back({version, old});
}

void ParameterSlot::keep_versions(const std::function<bool(std::int64_t version)>& is_read) {
  std::erase_if(stash, [&](const Stashed& old) { return !is_read(old.version); });
}

const Tensor& ParameterSlot::weights(std::int64_t wanted) const {
  if (wanted == version || !gradient) return value;
  const auto old = std::ranges::find(stash, wanted, &Stashed::version);
  if (old != stash.end()) return old->value;
  throw InternalError("parameter '" + parameter().name + "' is at version " + std::to_string(version) + "; version " +
                      std::to_string(wanted) + " is not kept");
}

ParameterSlot& ParameterStore::operator[](std::string_view name) {
  const auto at = std::ranges::find_if(slots_, [&](const auto& s) { return s.parameter().name == name; });
  if (at == slots_.end()) throw InternalError("this rank holds no parameter named '" + std::string(name) + "'");
  return *at;
}

}  // namespace shardproof::engine
