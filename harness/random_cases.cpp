// SPDX-License-Identifier: Apache-2.0
#include "harness/random_cases.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "impl/plan/schedule.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/philox.hpp"
#include "suites/workload/keys.hpp"
#include "suites/workload/random_workload.hpp"

namespace shardproof::harness {

namespace {

class Draw {
 public:
  Draw(std::uint64_t seed, std::int64_t index) : stream_(seed, fmt::format("random_case.{}", index)) {}

  std::int64_t from(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>((static_cast<std::uint64_t>(high - low + 1) * stream_.word(next_++)) >> 32);
  }
  bool one_in(std::int64_t n) { return from(1, n) == 1; }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// Layers by stage, any of them 0.
std::vector<std::int64_t> draw_layers(Draw& draw, std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> by_stage(static_cast<std::size_t>(stages), 0);
  for (; layers > 0; --layers) ++by_stage[static_cast<std::size_t>(draw.from(0, stages - 1))];
  return by_stage;
}

plan::Strategy draw_strategy(Draw& draw, const workload::Workload& w, std::int64_t most_ranks) {
  plan::Strategy s;
  if (most_ranks > 1 && !draw.one_in(8)) {
    do {
      s.dp = draw.from(1, most_ranks), s.pp = draw.from(1, most_ranks), s.tp = draw.from(1, most_ranks);
    } while (s.ranks() > most_ranks || s.ranks() == 1);
  }
  for (std::size_t k = s.order.size(); k > 1; --k)
    std::swap(s.order[k - 1], s.order[static_cast<std::size_t>(draw.from(0, static_cast<std::int64_t>(k) - 1))]);
  std::vector<std::string_view> schedules;
  for (const auto* generator : plan::schedules()) schedules.push_back(generator->name);
  s.schedule = schedules[static_cast<std::size_t>(draw.from(0, std::ssize(schedules) - 1))];
  s.microbatches = draw.one_in(2) ? draw.from(1, 9) : draw.from(1, 3);
  if (draw.one_in(4)) s.chunks = draw.from(1, 4);
  if (s.chunks == plan::schedule_generator(s.schedule).chunks) s.chunks = 0;
  const std::int64_t stages = plan::schedule_shape(s).stages();
  if (draw.one_in(2)) s.layers = draw_layers(draw, w.layers, stages);
  if (draw.one_in(2)) s.boundary = "scattered";
  if (draw.one_in(2)) s.attention = "tiled";
  if (draw.one_in(4)) {
    const auto names = workload::names_of(w.optimizer);
    s.optimizer = names[static_cast<std::size_t>(draw.from(0, std::ssize(names) - 1))];
  }
  if (draw.one_in(4)) s.clip = draw.one_in(2) ? 0.01 : 1000;
  if (plan::schedule_generator(s.schedule).stale != workload::StaleProgram::Rule::none) {
    s.clip = 0;
    if (s.schedule == "pipedream") s.microbatches = 1, s.vertical_sync = draw.one_in(2) ? "on" : "off";
    if (s.schedule == "pipedream" && draw.one_in(2)) {
      for (std::int64_t stage = 0; stage < s.pp; ++stage) s.replicas.push_back(draw.one_in(2) ? 1 : w.steps);
      if (s.ranks() > most_ranks) s.dp = s.tp = 1;
      if (s.ranks() > most_ranks) s.replicas.clear();
    }
  }
  return s;
}

}  // namespace

Case random_case(std::uint64_t seed, std::int64_t index, Track track, std::int64_t most_ranks) {
  const auto workload = workload::random_workload(seed, index);
  Draw draw(seed, index);
  // What has nothing to act on, or does not fit the workload, is left out.
  const auto strategy = plan::nearest_legal(draw_strategy(draw, workload, most_ranks), workload);
  return {workload.name, {}, plan::print(strategy), strategy.ranks(), track};
}

}  // namespace shardproof::harness
