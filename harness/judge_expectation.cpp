// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_expectation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/judge_update.hpp"

namespace shardproof::harness {

namespace {

/// The same for every tensor, technique and device; judge_test.cpp shows that other orders of summation stay under half.
constexpr double yardstick_factor = 8;

struct Precision {
  double unit;    ///< unit roundoff of the candidate
  double shrink;  ///< from the yardstick, which is float's, to the candidate's precision
  double tiny;    ///< the smallest positive number
};
Precision precision_of(Track track) {
  return track == Track::f64 ? Precision{0x1p-53, 0x1p-29, 0x1p-1074} : Precision{0x1p-24, 1, 0x1p-149};
}

bool of_update(const Observable& o) { return o.kind == Observed::parameter || o.kind == Observed::state; }

}  // namespace

ObservableIndex index_of(const std::vector<Observable>& observables) {
  ObservableIndex index;
  for (const auto& o : observables) index.emplace(ObservableKey{o.kind, o.name}, &o);
  return index;
}

double scalar_of(const Observable& observable) {
  const auto values = as_doubles(observable.values);
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : values[0];
}

std::vector<std::string> state_names(const workload::Workload& workload, const workload::Parameter& parameter) {
  if (!parameter.trainable || workload.optimizer == workload::OptimizerKind::sgd) return {};
  if (workload.optimizer == workload::OptimizerKind::momentum) return {parameter.name + ".momentum"};
  return {parameter.name + ".first_moment", parameter.name + ".second_moment"};
}

Expectation::Expectation(const workload::Workload& workload, Track track)
    : workload_(workload), track_(track), parameters_(workload::parameters(workload)) {
  oracle_ = reference::make_oracle(workload, track == Track::exact ? Track::exact : Track::f64);
  if (track == Track::exact) return;
  rough_ = reference::make_oracle(workload, Track::native);
  updater_ = reference::make_oracle(workload, Track::f64);
  for (const auto& p : parameters_) {
    before_[{Observed::parameter, p.name}] = workload::initial_values(workload, p);
    if (track == Track::native) {
      for (auto& x : before_[{Observed::parameter, p.name}]) x = static_cast<float>(x);
    }
    for (const auto& state : state_names(workload, p)) {
      before_[{Observed::state, state}].assign(static_cast<std::size_t>(p.elements()), 0);
    }
  }
}

bool Expectation::step(const workload::Batch& batch) {
  bounds_.clear();
  if (track_ == Track::exact) {
    observables_ = oracle_->step(batch);
    return true;
  }
  for (const auto& [key, values] : before_) {
    oracle_->set(key.first, key.second, values);
    rough_->set(key.first, key.second, std::vector<float>(values.begin(), values.end()));
  }
  observables_ = oracle_->step(batch);
  std::erase_if(observables_, of_update);
  const auto rough = rough_->step(batch);
  return std::ranges::all_of(observables_, [&](const Observable& o) { return bound_by_yardstick(o, rough); });
}

bool Expectation::bound_by_yardstick(const Observable& exact, const std::vector<Observable>& rough) {
  const auto there = std::ranges::find_if(rough, [&](const Observable& o) {
    return o.kind == exact.kind && o.name == exact.name && o.dims == exact.dims;
  });
  const auto values = as_doubles(exact.values);
  const double e = there == rough.end() ? std::numeric_limits<double>::quiet_NaN()
                                        : greatest_difference(as_doubles(there->values), values);
  if (!std::isfinite(e) || (exact.kind == Observed::skipped && e != 0)) {
    no_yardstick_ = fmt::format("step {}: in float the oracle's {} {} is missing, not finite or of another kind",
                                exact.step, name_of(exact.kind), exact.name);
    return false;
  }
  const auto [unit, shrink, tiny] = precision_of(track_);
  const double bound = yardstick_factor * (e * shrink + unit * greatest_magnitude(values));
  bounds_[{exact.kind, exact.name}] = {exact.kind == Observed::skipped ? 0 : bound};
  return true;
}

void Expectation::update(std::int64_t step, const ObservableIndex& candidate) {
  if (scalar_of(*candidate.at({Observed::skipped, "skipped"})) != 0) return expect_no_change(step);
  const auto [unit, shrink, tiny] = precision_of(track_);
  const double clip = scalar_of(*candidate.at({Observed::clip, "clip"}));
  std::vector<Values> gradients;
  ++taken_;
  for (const auto& p : parameters_) {
    const auto states = state_names(workload_, p);
    std::vector<double> gradient;
    if (p.trainable) {
      gradient = as_doubles(candidate.at({Observed::gradient, p.name})->values);
      gradients.emplace_back(gradient);
    }
    UpdateInput input;
    input.parameter = before_.at({Observed::parameter, p.name});
    input.gradient = gradient;
    if (!states.empty()) input.first = before_.at({Observed::state, states[0]});
    if (states.size() > 1) input.second = before_.at({Observed::state, states[1]});
    input.clip_factor = clip;
    input.learning_rate = workload::learning_rate(workload_, step);
    input.taken = taken_;
    auto bounds = update_bounds(workload_, p, input, unit + 0x1p-53, tiny);
    bounds_[{Observed::parameter, p.name}] = std::move(bounds.parameter);
    if (!states.empty()) bounds_[{Observed::state, states[0]}] = std::move(bounds.first);
    if (states.size() > 1) bounds_[{Observed::state, states[1]}] = std::move(bounds.second);
  }
  for (const auto& [key, values] : before_) updater_->set(key.first, key.second, values);
  for (auto& o : updater_->update(step, gradients, clip)) observables_.push_back(std::move(o));
}

void Expectation::expect_no_change(std::int64_t step) {
  for (const auto& p : parameters_) {
    std::vector<ObservableKey> keys = {{Observed::parameter, p.name}};
    for (const auto& state : state_names(workload_, p)) keys.emplace_back(Observed::state, state);
    for (const auto& key : keys) {
      observables_.push_back({step, key.first, key.second, p.dims, before_.at(key)});
      bounds_[key] = {0};
    }
  }
}

void Expectation::advance(const ObservableIndex& candidate) {
  for (auto& [key, values] : before_) values = as_doubles(candidate.at(key)->values);
}

Comparison Expectation::compare(const Observable& candidate, const Observable& oracle) const {
  if (track_ == Track::exact) return compare_bits(candidate.values, oracle.values);
  return compare_bounded(as_doubles(candidate.values), as_doubles(oracle.values),
                         bounds_.at({oracle.kind, oracle.name}));
}

double Expectation::slack(const Observable& oracle) const {
  // In exact: a multiple of a sum of products, rounded anew, is off by half a unit a product; four units is most of it.
  return track_ == Track::exact ? 0x1p-38 : greatest_magnitude(bounds_.at({oracle.kind, oracle.name}));
}

}  // namespace shardproof::harness
