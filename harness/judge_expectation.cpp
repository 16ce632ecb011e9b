// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_expectation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "harness/judge_update.hpp"
#include "harness/signals.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::harness {

namespace {

/// The same for every tensor, technique and device; judge_test.cpp shows that other orders of summation stay under
/// half.
constexpr double yardstick_factor = 8;

/// Draws of float's error: from the parameters as they are, then from parameters that are each moved by a unit in the
/// last place at most. One draw is no measure of a tensor of few elements: its error is 0 when the roundings happen to
/// cancel.
constexpr std::int64_t most_draws = 16;

/// x, or one of its neighbours.
float moved(float x, std::uint32_t random) {
  if (random % 3 == 0) return x;
  return std::nextafter(
      x, random % 3 == 1 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
}

struct Precision {
  double unit;    ///< unit roundoff of the candidate
  double shrink;  ///< from the yardstick, which is float's, to the candidate's precision
  double tiny;    ///< the smallest positive number
};
Precision precision_of(Track track) {
  return track == Track::f64 ? Precision{0x1p-53, 0x1p-29, 0x1p-1074} : Precision{0x1p-24, 1, 0x1p-149};
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
  draws_ = 0;
  error_.clear();
  for (const auto& [key, values] : before_) oracle_->set(key.first, key.second, values);
  observables_ = oracle_->step(batch);
  std::erase_if(observables_, of_update);
  return draw();
}

bool Expectation::draw() {
  stop_if_interrupted();
  for (const auto& [key, values] : before_) {
    std::vector<float> rough(values.begin(), values.end());
    if (draws_ > 0 && key.first == Observed::parameter) {
      const RandomStream stream(static_cast<std::uint64_t>(draws_), fmt::format("{}.step.{}", key.second, batch_.step));
      for (std::size_t i = 0; i < rough.size(); ++i) rough[i] = moved(rough[i], stream.word(i));
    }
    rough_->set(key.first, key.second, rough);
  }
  ++draws_;
  const auto shown = rough_->step(batch_);
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

double Expectation::summands(Observed kind) const {
  if (kind == Observed::loss) return static_cast<double>(batch_.label_count);
  if (kind != Observed::norm && kind != Observed::clip) return 0;
  double elements = 0;
  for (const auto& p : parameters_) elements += p.trainable ? static_cast<double>(p.elements()) : 0;
  return elements;
}

void Expectation::bound_by_yardstick() {
  const auto [unit, shrink, tiny] = precision_of(track_);
  const auto& w = workload_;
  // Of the sums behind one element of a gradient: at most one per token and feature.
  const double terms = static_cast<double>(batch_.size() * w.sequence * std::max({w.hidden, w.mlp_hidden, w.vocab}));
  double model = 0;  // the greatest gradient entry
  for (const auto& o : observables_) {
    if (o.kind == Observed::gradient) model = std::max(model, greatest_magnitude(as_doubles(o.values)));
  }
  for (const auto& o : observables_) {
    if (of_update(o)) continue;
    const double greatest = greatest_magnitude(as_doubles(o.values)), e = error_.at({o.kind, o.name});
    double bound = yardstick_factor * (e * shrink + unit * greatest) + summands(o.kind) * 0x1p-53 * greatest;
    // A parameter that is used nowhere has no terms.
    if (o.kind == Observed::gradient && std::ranges::find(parameters_, o.name, &Parameter::name)->used) {
      // All zero, in double and in every draw: by terms that cancel to the last bit in the oracle's order, as where a
      // query sees one key only. In another order what is left is a rounding of terms that the model's gradients bound.
      const bool all_zero = greatest == 0 && e == 0 && draws_ == most_draws;
      if (all_zero || o.name.ends_with(".attention.key.bias")) bound = std::max(bound, yardstick_factor * unit * model);
      bound += terms * tiny;
    }
    bounds_[{o.kind, o.name}] = {o.kind == Observed::skipped ? 0 : bound};
  }
}

void Expectation::update(std::int64_t step, const ObservableIndex& candidate) {
  stop_if_interrupted();
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
