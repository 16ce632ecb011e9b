// SPDX-License-Identifier: Apache-2.0
// For tests: strategies of hostile shape, and forms of whole strategies.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "harness/predict/traffic.hpp"
#include "impl/plan/plan.hpp"
#include "impl/plan/strategy.hpp"

namespace shardproof::predict::testing {

inline std::int64_t pick(std::mt19937& random, std::initializer_list<std::int64_t> of) {
  return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
}

/// A legal one with a flush: stages without layers, more tensor ranks than heads, more microbatches than samples, any
/// mesh order.
inline plan::Strategy random_strategy(std::mt19937& random, const workload::Workload& workload) {
  plan::Strategy s;
  s.pp = pick(random, {1, 2, 3, 4, 5});
  s.tp = pick(random, {1, 2, 3, 4, 5, 6, 7});
  s.dp = pick(random, {1, 2, 3});
  s.microbatches = pick(random, {1, 2, 5, 8});
  if (random() % 2 == 0) s.attention = "tiled";
  if ((s.pp > 1) + (s.tp > 1) + (s.dp > 1) > 1) std::shuffle(s.order.begin(), s.order.end(), random);
  if (s.pp == 1) return s;
  if (s.tp > 1 && random() % 2 == 0) s.boundary = "scattered";
  std::vector<std::string> legal;
  for (const auto* generator : plan::schedules()) {
    s.schedule = generator->name;
    const bool flushes = generator->stale == workload::StaleProgram::Rule::none;
    if (flushes && generator->refusal(plan::schedule_shape(s)).empty()) legal.emplace_back(s.schedule);
  }
  s.schedule = legal[random() % legal.size()];
  if (s.schedule == "interleaved" && random() % 2 == 0) s.chunks = 3;
  if (random() % 2 == 0) return s;
  s.layers.assign(static_cast<std::size_t>(plan::schedule_shape(s).stages()), 0);
  for (std::int64_t layer = 0; layer < workload.layers; ++layer) ++s.layers[random() % s.layers.size()];
  return s;
}

/// Of the placement that the strategy's schedule has.
inline TrafficTable traffic_of(const workload::Workload& workload, const plan::Strategy& strategy, Track track,
                               std::int64_t samples) {
  return traffic(workload, strategy, plan::pipeline_of(strategy), track, samples);
}

}  // namespace shardproof::predict::testing
