// SPDX-License-Identifier: Apache-2.0
#include "harness/own_updates.hpp"

#include <algorithm>
#include <cmath>

#include "harness/judge_update.hpp"

namespace shardproof::harness {
namespace {

/// Frameworks write one update in several orders: p (1 - lr wd) first, lr / c1 folded, sqrt(v) / sqrt(c2). None of them
/// has more than three times the roundings of ARITHMETIC.md's.
constexpr double other_orders = 3;

/// Relative error of 1 - b^t in double, when b^t is off by a rounding for each factor.
double correction_error(double b, std::int64_t t) {
  const double power = std::pow(b, static_cast<double>(t));
  return static_cast<double>(t) * 0x1p-53 * power / (1 - power);
}

}  // namespace

OwnUpdates::OwnUpdates(const workload::Workload& workload, const Precision& precision)
    : workload_(workload),
      precision_(precision),
      parameters_(workload::parameters(workload)),
      oracle_(reference::make_oracle(workload, Track::f64)) {
  for (const auto& p : parameters_) {
    before_[p.name] = workload::initial_values(workload, p);
    for (const auto& name : state_names(workload, p)) {
      const std::vector<double> zeros(static_cast<std::size_t>(p.elements()), 0);
      state_[{Observed::state, name}] = magnitudes_[{Observed::state, name}] = zeros;
    }
  }
}

/// The first step starts from initial values that the candidate may hold rounded.
std::vector<double> OwnUpdates::bounds_of_start(const std::string& parameter) const {
  std::vector<double> bounds = before_.at(parameter);
  for (double& b : bounds) b = started_ ? 0 : precision_.unit * std::fabs(b);
  return bounds;
}

void OwnUpdates::update(std::int64_t step, const Tensors& gradients, double clip, double clip_error) {
  ++taken_;
  clip_error_ = std::max(clip_error_, clip_error);
  const auto t = static_cast<double>(taken_);
  const double u = other_orders * t * (precision_.unit + 0x1p-53), tiny = other_orders * t * precision_.tiny;
  std::map<std::string, Values> values;
  for (const auto& p : parameters_) {
    oracle_->set(Observed::parameter, p.name, before_.at(p.name));
    UpdateInput input;
    input.parameter = before_.at(p.name);
    const auto states = state_names(workload_, p);
    if (p.trainable) {
      input.gradient = gradients.at(p.name);
      values.emplace(p.name, gradients.at(p.name));
    }
    if (!states.empty()) input.first = magnitudes_.at({Observed::state, states[0]});
    if (states.size() > 1) input.second = magnitudes_.at({Observed::state, states[1]});
    input.clip_factor = clip;
    input.learning_rate = workload::learning_rate(workload_, step);
    input.taken = taken_;
    input.gradient_error = clip_error_;
    input.correction_error = correction_error(workload_.beta1, taken_) + correction_error(workload_.beta2, taken_);
    auto bounds = update_bounds(workload_, p, input, u, tiny);
    const auto start = bounds_of_start(p.name);
    for (std::size_t i = 0; i < start.size(); ++i) bounds.parameter[i] += start[i];
    bounds_[{Observed::parameter, p.name}] = std::move(bounds.parameter);
    if (!states.empty()) bounds_[{Observed::state, states[0]}] = std::move(bounds.first);
    if (states.size() > 1) bounds_[{Observed::state, states[1]}] = std::move(bounds.second);
    for (std::size_t k = 0; k < states.size(); ++k) {
      auto& magnitude = magnitudes_.at({Observed::state, states[k]});
      const double decay = workload_.optimizer == workload::OptimizerKind::momentum ? workload_.momentum
                           : k == 0                                                 ? workload_.beta1
                                                                                    : workload_.beta2;
      const double added = workload_.optimizer == workload::OptimizerKind::momentum ? 1 : 1 - decay;
      for (std::size_t i = 0; i < magnitude.size(); ++i) {
        const double g = std::fabs(input.gradient[i] * clip);
        magnitude[i] = decay * magnitude[i] + added * (k == 0 ? g : g * g);
      }
    }
  }
  expected_ = oracle_->update(step, values, clip);
  for (const auto& o : expected_)
    if (o.kind == Observed::state) state_.at({o.kind, o.name}) = as_doubles(o.values);
}

void OwnUpdates::keep(std::int64_t step) {
  expected_.clear();
  for (const auto& p : parameters_) {
    expected_.push_back({step, Observed::parameter, p.name, p.dims, before_.at(p.name)});
    bounds_[{Observed::parameter, p.name}] = bounds_of_start(p.name);
    for (const auto& name : state_names(workload_, p)) {
      const ObservableKey key{Observed::state, name};
      expected_.push_back({step, Observed::state, name, p.dims, state_.at(key)});
      if (!bounds_.contains(key)) bounds_[key].assign(static_cast<std::size_t>(p.elements()), 0);
    }
  }
}

void OwnUpdates::advance(const std::string& parameter, std::vector<double> values) {
  before_.at(parameter) = std::move(values);
  started_ = true;
}

}  // namespace shardproof::harness
