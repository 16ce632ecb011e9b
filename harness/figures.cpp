// SPDX-License-Identifier: Apache-2.0
#include "harness/figures.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "harness/budget.hpp"

namespace shardproof::harness {

std::array<double, 3> quartiles(std::vector<double> values) {
  std::ranges::sort(values);
  std::array<double, 3> result{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double place = 0.25 * static_cast<double>(i + 1) * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    result[i] = std::lerp(values[below], values[above], place - static_cast<double>(below));
  }
  return result;
}

std::optional<std::array<double, 3>> tokens_per_second(const workload::Workload& workload, const Trained& trained) {
  std::vector<double> rates;
  const auto turn = static_cast<std::size_t>(steps_of_a_turn(workload.stale.replicas));
  const std::size_t end = std::min(trained.steps.size(), std::max<std::size_t>(1 + most_recorded_steps, 2 * turn));
  for (std::size_t begin = turn; begin + turn <= end; begin += turn) {
    double tokens = 0, seconds = 0;
    bool taken = false;
    for (std::size_t i = begin; i < begin + turn; ++i) {
      tokens += static_cast<double>(trained.steps[i].tokens), seconds += trained.seconds[i];
      taken = taken || trained.steps[i].skipped == engine::Skipped::no;
    }
    if (taken) rates.push_back(tokens / seconds);
  }
  if (rates.empty()) return std::nullopt;
  return quartiles(std::move(rates));
}

std::optional<Learning> learning(const workload::Workload& workload, std::span<const engine::StepResult> steps) {
  std::vector<const engine::StepResult*> with_loss;
  for (const engine::StepResult& step : steps)
    if (step.loss) with_loss.push_back(&step);
  if (with_loss.empty()) return std::nullopt;
  Learning found{.first_loss = *with_loss.front()->loss, .last_loss = *with_loss.back()->loss};
  const auto last = std::span(with_loss).last(std::min<std::size_t>(100, with_loss.size()));
  double sum = 0;
  for (const engine::StepResult* step : last) {
    sum += *step->loss * static_cast<double>(step->tokens);
    found.tokens += step->tokens;
  }
  found.steps = std::ssize(last);
  found.mean = sum / static_cast<double>(found.tokens);
  if (!std::isfinite(found.mean)) return std::nullopt;
  // A repeated data set can be learnt by heart, and smoothed labels have another loss: then the entropy is no floor.
  if (workload.corpus == "markov" && workload.samples == 0 && workload.label_smoothing == 0) {
    const workload::MarkovSource source = workload::markov_source(workload);
    found.floor = source.entropy;
    found.standard_error = std::sqrt(source.variance / static_cast<double>(found.tokens));
  }
  return found;
}

std::optional<LearningCost> learning_cost(const workload::Workload& workload, std::span<const engine::StepResult> stale,
                                          std::span<const engine::StepResult> synchronous) {
  const auto learned = learning(workload, synchronous);
  const auto stopped = [](const engine::StepResult& step) { return step.skipped == engine::Skipped::non_finite; };
  if (!learned || !learning(workload, stale) || std::ranges::any_of(synchronous, stopped)) return std::nullopt;
  LearningCost cost{.synchronous_mean = learned->mean};
  std::deque<const engine::StepResult*> last;  // with a loss, as many as the mean is over
  double sum = 0, tokens = 0;
  const auto count = [&](const engine::StepResult& step, double sign) {
    sum += sign * *step.loss * static_cast<double>(step.tokens), tokens += sign * static_cast<double>(step.tokens);
  };
  for (const engine::StepResult& step : stale) {
    cost.tokens += step.tokens;
    if (!step.loss) continue;
    last.push_back(&step);
    count(step, 1);
    if (std::ssize(last) > learned->steps) {
      count(*last.front(), -1);
      last.pop_front();
    }
    if (!cost.tokens_to_reach && std::ssize(last) == learned->steps && sum <= learned->mean * tokens)
      cost.tokens_to_reach = cost.tokens;
  }
  return cost;
}

}  // namespace shardproof::harness
