// SPDX-License-Identifier: Apache-2.0
#include "harness/judge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/judge_compare.hpp"
#include "harness/judge_expectation.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "reference/stale.hpp"

namespace shardproof::harness {

namespace {

const std::array<std::string, 6> shown_names = {"gradient", "clip_bound", "clip_idle", "no_label", "overflow", "any"};

Dtype expected_dtype(Track track, Observed kind) {
  switch (kind) {
    case Observed::gradient:
    case Observed::parameter: return scalar_of(track);
    case Observed::state: return state_of(track);
    case Observed::skipped: return Dtype::i64;
    default: return Dtype::f64;
  }
}

std::string_view skipped_text(double value) {
  constexpr std::array<std::string_view, 3> texts = {"step taken", "skipped as not finite",
                                                     "skipped for want of labels"};
  const auto at = static_cast<std::size_t>(value);
  return value >= 0 && at < texts.size() && static_cast<double>(at) == value ? texts[at] : "no such state";
}

}  // namespace

std::string_view name_of(Shown shown) { return shown_names.at(static_cast<std::size_t>(shown)); }

Shown shown_of(std::string_view name) {
  const auto found = std::ranges::find(shown_names, name);
  if (found == shown_names.end()) throw BadInput(unknown("property to show", name, shown_names));
  return static_cast<Shown>(found - shown_names.begin());
}

std::string print(const Divergence& d) {
  std::string text = fmt::format("step {}: {}", d.step, described({d.kind, d.name}));
  if (!d.problem.empty()) return text + ": " + d.problem;
  if (is_tensor(d.kind)) text += fmt::format(", element {}", d.index);
  if (d.rank) text += fmt::format(" (on rank {})", static_cast<int>(*d.rank));
  text += fmt::format(": candidate {:.17g}, oracle {:.17g}", d.candidate, d.oracle);
  text += d.bound > 0 ? fmt::format(", {:.3g} times the bound {:.3g}", d.error / d.bound, d.bound)
                      : fmt::format(", off by {:.3g} where bits must agree", d.error);
  if (is_tensor(d.kind)) {
    text += fmt::format("; {} of its elements and {} of {} {}s differ", d.outside, d.tensors, d.of, name_of(d.kind));
  }
  if (d.ratio) text += fmt::format("; candidate = {:.6g} x oracle on {} of {}", *d.ratio, d.ratio_tensors, d.tensors);
  if (!d.ratio_means.empty()) text += ": " + d.ratio_means;
  return text;
}

struct Judge::Impl {
  Impl(const workload::Workload& w, Track t, JudgeOptions o)
      : workload(w), track(t), options(std::move(o)), parameters(workload::parameters(w)), expectation(w, t) {
    for (const auto& p : parameters) {
      dims[{Observed::parameter, p.name}] = p.dims;
      if (p.trainable) dims[{Observed::gradient, p.name}] = p.dims;
      for (const auto& state : state_names(w, p)) dims[{Observed::state, state}] = p.dims;
    }
  }

  /// What a step shows, in the order in which it is judged.
  std::vector<ObservableKey> order(std::int64_t step, bool overflow) const {
    std::vector<ObservableKey> keys = {{Observed::skipped, "skipped"}};
    const auto is_shown = [&](const workload::Parameter& p) {
      return reference::steps_of_update(workload, p.name, step) > 0;
    };
    if (!overflow) {
      keys.emplace_back(Observed::loss, "loss");
      for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
        if (p->trainable && is_shown(*p)) keys.emplace_back(Observed::gradient, p->name);
      }
      keys.emplace_back(Observed::norm, "norm");
      keys.emplace_back(Observed::clip, "clip");
    }
    for (const auto& p : parameters) {
      if (is_shown(p)) keys.emplace_back(Observed::parameter, p.name);
    }
    for (const auto& p : parameters) {
      if (!is_shown(p)) continue;
      for (auto& state : state_names(workload, p)) keys.emplace_back(Observed::state, std::move(state));
    }
    return keys;
  }

  bool fail(std::int64_t step, const ObservableKey& key, std::string problem) {
    if (divergence) return false;
    divergence = Divergence{};
    divergence->step = step, divergence->kind = key.first, divergence->name = key.second;
    divergence->problem = std::move(problem);
    return false;
  }

  /// Whether the candidate shows just what such a step shows, in the right types and dims.
  bool well_formed(std::int64_t step, const std::vector<Observable>& candidate, const ObservableIndex& shown) {
    const auto skipped = shown.find({Observed::skipped, "skipped"});
    if (skipped == shown.end()) return fail(step, {Observed::skipped, "skipped"}, "missing");
    const auto keys = order(step, scalar_of(*skipped->second) == 1);
    for (const auto& key : keys) {
      if (!shown.contains(key)) return fail(step, key, "missing");
    }
    std::set<ObservableKey> legal(keys.begin(), keys.end());
    for (const auto& o : candidate) {
      const ObservableKey key{o.kind, o.name};
      if (shown.at(key) != &o) return fail(step, key, "shown twice");
      if (!legal.contains(key)) return fail(step, key, "not an observable of this step");
      if (o.step != step) return fail(step, key, fmt::format("is of step {}", o.step));
      const auto dtype = expected_dtype(track, o.kind);
      if (dtype_of(o.values) != dtype) {
        return fail(step, key, fmt::format("has dtype {}, not {}", name_of(dtype_of(o.values)), name_of(dtype)));
      }
      const bool null = o.kind == Observed::loss && o.dims == Dims{0};
      const Dims right = is_tensor(o.kind) ? dims.at(key) : Dims{null ? 0 : 1};
      if (o.dims != right || size_of(o.values) != elements_of(right)) {
        return fail(step, key,
                    fmt::format("has dims {} and {} elements, not dims {}", fmt::join(o.dims, "x"), size_of(o.values),
                                fmt::join(right, "x")));
      }
    }
    return true;
  }

  /// Judges the step; false when something differs or cannot be judged.
  bool judge(const workload::Batch& batch, const ObservableIndex& shown) {
    if (!expectation.step(batch)) return false;
    const auto& skipped = *shown.at({Observed::skipped, "skipped"});
    const auto& observables = expectation.observables();
    const auto right = std::ranges::find(observables, Observed::skipped, &Observable::kind);
    if (scalar_of(skipped) != scalar_of(*right)) {  // what else there is to compare hangs on it
      return fail(
          batch.step, {Observed::skipped, "skipped"},
          fmt::format("candidate: {}, oracle: {}", skipped_text(scalar_of(skipped)), skipped_text(scalar_of(*right))));
    }
    if (track != Track::exact) expectation.update(batch.step, shown);
    const auto oracle = index_of(observables);
    for (const auto& key : order(batch.step, scalar_of(skipped) == 1)) {
      const Observable &c = *shown.at(key), &o = *oracle.at(key);
      if (c.dims != o.dims) return fail(batch.step, key, c.dims == Dims{0} ? "null" : "not null");  // a loss
      const Comparison result = expectation.compare(c, o);
      if (result.outside > 0) return diagnose(batch.step, key, result, shown);
      compared += size_of(c.values);
      if (key.first == Observed::gradient || key.first == Observed::parameter) counted += size_of(c.values);
      if (key.first < Observed::skipped && result.worst > worst) {
        worst = result.worst;
        worst_name = fmt::format("step {}: {}", batch.step, described(key));
      }
    }
    note(batch.step, shown);
    expectation.advance(shown);
    return true;
  }

  /// On several ranks, the primary holder of an element.
  std::optional<Rank> holder(const ObservableKey& key, std::int64_t index) const {
    if (options.plan == nullptr || options.plan->mesh.ranks() == 1 || !is_tensor(key.first)) return std::nullopt;
    for (const auto& layout : options.plan->layout.parameters) {
      const auto& name = layout.parameter.name;
      if (key.second == name || (key.first == Observed::state && key.second.starts_with(name + ".")))
        return plan::primary_holder(*options.plan, layout, index);
    }
    return std::nullopt;
  }

  /// A copy that is not what its primary holder has.
  bool diverge(const engine::ReplicaDifference& wrong) {
    Divergence d;
    d.step = wrong.step, d.kind = wrong.kind, d.name = wrong.name;
    d.index = wrong.index, d.rank = wrong.rank;
    d.candidate = wrong.value, d.oracle = wrong.primary;
    d.of_copies = true;
    const auto primary = holder({wrong.kind, wrong.name}, wrong.index);
    d.problem = fmt::format("element {}: the copy on rank {} is {:.17g}, that of {}its primary holder{} {:.17g}",
                            wrong.index, static_cast<int>(wrong.rank), wrong.value,
                            primary ? fmt::format("rank {}, ", static_cast<int>(*primary)) : "", primary ? "," : "",
                            wrong.primary);
    divergence = std::move(d);
    return false;
  }

  /// The first observable that differs, and what the others of its kind have in common with it.
  bool diagnose(std::int64_t step, const ObservableKey& first, const Comparison& result, const ObservableIndex& shown) {
    Divergence d;
    d.step = step, d.kind = first.first, d.name = first.second;
    d.index = result.index, d.candidate = result.candidate, d.oracle = result.oracle;
    d.error = result.error, d.bound = result.bound, d.outside = result.outside;
    d.rank = holder(first, result.index);
    std::vector<double> ratios;
    for (const auto& o : expectation.observables()) {
      if (o.kind != first.first) continue;
      ++d.of;
      const Observable& c = *shown.at({o.kind, o.name});
      if (expectation.compare(c, o).outside == 0) continue;
      ++d.tensors;
      const auto ratio = constant_ratio(as_doubles(c.values), as_doubles(o.values), expectation.slack(o));
      if (ratio) ratios.push_back(*ratio);
    }
    if (const auto common = common_ratio(std::move(ratios))) {
      d.ratio = common->ratio;
      d.ratio_tensors = common->tensors;
    }
    divergence = std::move(d);
    return false;
  }

  /// What this step shows, and how many elements it had to compare.
  void note(std::int64_t step, const ObservableIndex& shown) {
    const double skipped = scalar_of(*shown.at({Observed::skipped, "skipped"}));
    for (const auto& p : parameters) {
      if (reference::steps_of_update(workload, p.name, step) == 0) continue;
      required += p.elements() * (p.trainable && skipped != 1 ? 2 : 1);
    }
    const auto saw = [&](Shown s) { seen.at(static_cast<std::size_t>(s)) = true; };
    if (skipped == 1) saw(Shown::overflow), ++overflowed;
    if (skipped == 2) saw(Shown::no_label);
    if (skipped != 0) return saw(Shown::any);
    if (workload.clip > 0)
      saw(scalar_of(*shown.at({Observed::clip, "clip"})) < 1 ? Shown::clip_bound : Shown::clip_idle);
    if (scalar_of(*shown.at({Observed::norm, "norm"})) > 0) saw(Shown::gradient), saw(Shown::any);
  }

  workload::Workload workload;
  Track track;
  JudgeOptions options;
  std::vector<workload::Parameter> parameters;
  Expectation expectation;
  std::map<ObservableKey, Dims> dims;  // of every tensor
  std::int64_t steps = 0, overflowed = 0, compared = 0, counted = 0, required = 0;
  double worst = 0;
  std::string worst_name;
  std::array<bool, shown_names.size()> seen{};
  Digest digest;
  bool malformed = false, stopped = false;
  std::optional<Divergence> divergence;
};

Judge::Judge(const workload::Workload& workload, Track track, JudgeOptions options)
    : impl_(std::make_unique<Impl>(workload, track, std::move(options))) {}
Judge::~Judge() = default;

void Judge::step(const workload::Batch& batch, const engine::Observation& seen) {
  Impl& impl = *impl_;
  const auto& candidate = seen.observables;
  const auto shown = index_of(candidate);
  if (impl.malformed || !impl.well_formed(batch.step, candidate, shown)) {
    impl.malformed = true;
    return;
  }
  impl.digest.add(candidate);
  if (!impl.stopped && impl.judge(batch, shown) && (seen.differences.empty() || impl.diverge(seen.differences.front())))
    ++impl.steps;
  else
    impl.stopped = true;
}

Judgement Judge::finish() {
  Impl& impl = *impl_;
  Judgement result;
  result.steps = impl.steps;
  result.compared = impl.compared;
  result.worst = impl.worst;
  result.worst_name = impl.worst_name;
  result.divergence = impl.divergence;
  if (!impl.malformed) result.digest = impl.digest.finish();
  const auto decide = [&](Verdict verdict, std::string reason) {
    result.verdict = verdict;
    result.reason = std::move(reason);
    return result;
  };
  if (impl.divergence) return decide(Verdict::fail, print(*impl.divergence));
  if (!impl.expectation.no_yardstick().empty()) return decide(Verdict::mistrusted, impl.expectation.no_yardstick());
  if (impl.steps < impl.options.steps) {
    return decide(Verdict::error, fmt::format("{} steps were judged, not {}", impl.steps, impl.options.steps));
  }
  if (impl.counted < impl.required || impl.required == 0) {
    return decide(Verdict::error, fmt::format("{} elements of parameters and gradients were compared, not {}",
                                              impl.counted, impl.required));
  }
  for (const Shown shown : impl.options.shows) {
    if (impl.seen.at(static_cast<std::size_t>(shown))) continue;
    auto reason = fmt::format("no step showed {}: this input cannot reveal a fault", name_of(shown));
    if (impl.overflowed == impl.steps) {
      reason +=
          fmt::format("; all {} steps were skipped, for overflow or a gradient that is not finite (try a lower {})",
                      impl.steps, impl.track == Track::exact ? "loss_scale" : "learning_rate");
    }
    return decide(Verdict::mistrusted, std::move(reason));
  }
  return decide(Verdict::pass, "");
}

}  // namespace shardproof::harness
