// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_expectation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "harness/judge_update.hpp"
#include "harness/signals.hpp"
#include "reference/stale.hpp"

namespace shardproof::harness {

namespace {

const Precision& precision_of(Track track) {
  return harness::precision_of(track == Track::f64 ? Dtype::f64 : Dtype::f32);
}

using workload::Parameter;

bool of_update(const Observable& o) { return o.kind == Observed::parameter || o.kind == Observed::state; }

}  // namespace

ObservableIndex index_of(const std::vector<Observable>& observables) {
  ObservableIndex index;
  for (const auto& o : observables) index.emplace(ObservableKey{o.kind, o.name}, &o);
  return index;
}

bool is_tensor(Observed kind) {
  return kind == Observed::gradient || kind == Observed::parameter || kind == Observed::state;
}

std::string described(const ObservableKey& key) {
  const std::string kind(name_of(key.first));
  return is_tensor(key.first) ? fmt::format("{} of {}", kind, key.second) : kind;
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
  stop_if_interrupted();
  bounds_.clear();
  if (track_ == Track::exact) {
    observables_ = oracle_->step(batch);
    return true;
  }
  batch_ = batch;
  labels_[batch.step] = batch.label_count;
  draws_ = 0;
  error_.clear();
  for (const auto& [key, values] : before_) oracle_->set(key.first, key.second, values);
  observables_ = oracle_->step(batch);
  std::erase_if(observables_, of_update);
  return draw();
}

bool Expectation::draw() {
  stop_if_interrupted();
  for (const auto& [key, values] : before_)
    rough_->set(key.first, key.second, std::vector<float>(values.begin(), values.end()));
  const std::int64_t draw = draws_++;
  const auto shown = rough_->step(batch_, [&](const std::string& name, const Values& values) {
    return moved_by_an_ulp(as_doubles(values), name, draw, batch_.step);
  });
  const auto rough = index_of(shown);
  for (const auto& o : observables_) {
    if (of_update(o)) continue;
    const auto there = rough.find({o.kind, o.name});
    const double e = there == rough.end() || there->second->dims != o.dims
                         ? std::numeric_limits<double>::quiet_NaN()
                         : greatest_difference(as_doubles(there->second->values), as_doubles(o.values));
    if (!std::isfinite(e) || (o.kind == Observed::skipped && e != 0)) {
      no_yardstick_ = fmt::format("step {}: in float the oracle's {} is missing, not finite or of another kind", o.step,
                                  described({o.kind, o.name}));
      return false;
    }
    double& greatest = error_[{o.kind, o.name}];
    greatest = std::max(greatest, e);
  }
  bound_by_yardstick();
  return true;
}

Yardstick yardstick_of(const workload::Workload& w, const Precision& precision, const workload::Batch& batch,
                       const std::vector<Observable>& oracle) {
  Yardstick yardstick{.precision = precision};
  yardstick.labels = static_cast<double>(batch.label_count);
  for (const auto& p : workload::parameters(w))
    yardstick.elements += p.trainable ? static_cast<double>(p.elements()) : 0;
  // At most one per token and feature.
  yardstick.terms = static_cast<double>(batch.size() * w.sequence * std::max({w.hidden, w.mlp_hidden, w.vocab}));
  for (const auto& o : oracle) {
    if (o.kind == Observed::gradient)
      yardstick.model = std::max(yardstick.model, greatest_magnitude(as_doubles(o.values)));
  }
  return yardstick;
}

void Expectation::bound_by_yardstick() {
  const Yardstick yardstick = yardstick_of(workload_, precision_of(track_), batch_, observables_);
  for (const auto& o : observables_) {
    if (of_update(o)) continue;
    const double greatest = greatest_magnitude(as_doubles(o.values)), e = error_.at({o.kind, o.name});
    const bool zero = greatest == 0 && e == 0 && draws_ == most_draws;
    const bool used = o.kind != Observed::gradient || std::ranges::find(parameters_, o.name, &Parameter::name)->used;
    bounds_[{o.kind, o.name}] = {yardstick.bound(o.kind, o.name, greatest, e, zero, used)};
  }
}

void Expectation::update(std::int64_t step, const ObservableIndex& candidate) {
  stop_if_interrupted();
  const bool is_finite = scalar_of(*candidate.at({Observed::skipped, "skipped"})) != 1;
  const Precision& precision = precision_of(track_);
  const double clip = is_finite ? scalar_of(*candidate.at({Observed::clip, "clip"})) : 1;
  std::map<std::string, Values> gradients;
  for (const auto& p : parameters_) {
    if (reference::steps_of_update(workload_, p.name, step) == 0) continue;
    if (!is_finite || labels_of_update(p, step) == 0) {
      expect_no_change(step, p);
      continue;
    }
    const auto states = state_names(workload_, p);
    std::vector<double> gradient;
    if (p.trainable) {
      gradient = as_doubles(candidate.at({Observed::gradient, p.name})->values);
      gradients.emplace(p.name, gradient);
    }
    UpdateInput input;
    input.parameter = before_.at({Observed::parameter, p.name});
    input.gradient = gradient;
    if (!states.empty()) input.first = before_.at({Observed::state, states[0]});
    if (states.size() > 1) input.second = before_.at({Observed::state, states[1]});
    input.clip_factor = clip;
    input.learning_rate = workload::learning_rate(workload_, step);
    input.taken = ++taken_[p.name];
    auto bounds = update_bounds(workload_, p, input, precision.unit + 0x1p-53, precision.tiny);
    bounds_[{Observed::parameter, p.name}] = std::move(bounds.parameter);
    if (!states.empty()) bounds_[{Observed::state, states[0]}] = std::move(bounds.first);
    if (states.size() > 1) bounds_[{Observed::state, states[1]}] = std::move(bounds.second);
  }
  for (const auto& [key, values] : before_) updater_->set(key.first, key.second, values);
  std::set<ObservableKey> kept;
  for (const auto& o : observables_) kept.insert({o.kind, o.name});
  for (auto& o : updater_->update(step, gradients, clip))
    if (!kept.contains({o.kind, o.name})) observables_.push_back(std::move(o));
}

std::int64_t Expectation::labels_of_update(const Parameter& parameter, std::int64_t step) const {
  std::int64_t labels = 0;
  for (std::int64_t k = step; k > step - reference::steps_of_update(workload_, parameter.name, step); --k)
    labels += labels_.at(k);
  return labels;
}

void Expectation::expect_no_change(std::int64_t step, const Parameter& p) {
  std::vector<ObservableKey> keys = {{Observed::parameter, p.name}};
  for (const auto& state : state_names(workload_, p)) keys.emplace_back(Observed::state, state);
  for (const auto& key : keys) {
    observables_.push_back({step, key.first, key.second, p.dims, before_.at(key)});
    bounds_[key] = {0};
  }
}

void Expectation::advance(const ObservableIndex& candidate) {
  for (auto& [key, values] : before_)
    if (const auto shown = candidate.find(key); shown != candidate.end()) values = as_doubles(shown->second->values);
}

Comparison Expectation::compare(const Observable& candidate, const Observable& oracle) {
  if (track_ == Track::exact) return compare_bits(candidate.values, oracle.values);
  const auto values = as_doubles(candidate.values), right = as_doubles(oracle.values);
  const auto& bounds = bounds_.at({oracle.kind, oracle.name});
  Comparison result = compare_bounded(values, right, bounds);
  // A draw only widens bounds: what is inside now would be inside after all of them.
  while (result.worst > 0.5 && oracle.kind < Observed::skipped && draws_ < most_draws && draw()) {
    result = compare_bounded(values, right, bounds);
  }
  return result;
}

double Expectation::slack(const Observable& oracle) const {
  // In exact: a multiple of a sum of products, rounded anew, is off by half a unit a product; four units is most of it.
  return track_ == Track::exact ? 0x1p-38 : greatest_magnitude(bounds_.at({oracle.kind, oracle.name}));
}

}  // namespace shardproof::harness
