// SPDX-License-Identifier: Apache-2.0
// For tests: strategies of hostile shape.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <random>

#include "impl/plan/strategy.hpp"

namespace shardproof::predict::testing {

inline std::int64_t pick(std::mt19937& random, std::initializer_list<std::int64_t> of) {
  return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
}

/// A legal one: stages without layers, more tensor ranks than heads, more microbatches than samples, any mesh order.
inline plan::Strategy random_strategy(std::mt19937& random, const workload::Workload& workload) {
  plan::Strategy s;
  s.pp = pick(random, {1, 2, 3, 4, 5});
  s.tp = pick(random, {1, 2, 3, 4, 5, 6, 7});
  s.dp = pick(random, {1, 2, 3});
  s.microbatches = pick(random, {1, 2, 5});
  if (random() % 2 == 0) s.attention = "tiled";
  if ((s.pp > 1) + (s.tp > 1) + (s.dp > 1) > 1) std::shuffle(s.order.begin(), s.order.end(), random);
  if (s.pp == 1) return s;
  s.schedule = random() % 2 == 0 ? "gpipe" : "naive";
  if (random() % 2 == 0) return s;
  s.layers.assign(static_cast<std::size_t>(s.pp), 0);
  for (std::int64_t layer = 0; layer < workload.layers; ++layer) ++s.layers[random() % s.layers.size()];
  return s;
}

}  // namespace shardproof::predict::testing
