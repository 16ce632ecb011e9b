// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_rules.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

// No flush: each minibatch (here a microbatch) updates every stage as its backward ends. A rank of a stage goes forward
// with as many minibatches as it takes for the first to come back; a stage on r ranks gives minibatch k to k mod r, and
// these sum their gradients: an update is of r minibatches. With vertical sync a stage needs the weights of as many
// minibatches as stage 0 had.
std::string refusal(const ScheduleShape& shape) {
  if (auto why = unused_shape(shape, {.replicas = true}); !why.empty()) return why;
  if (shape.replicas.empty()) return "";
  const std::string replicas = workload::shortened(fmt::format("replicas {}", fmt::join(shape.replicas, ",")));
  std::int64_t left = shape.ranks;
  for (const std::int64_t r : shape.replicas) {
    if (r < 1) return fmt::format("{}: a stage is on at least 1 rank, not {}", replicas, r);
    if (r > left)
      return fmt::format("{}: they are more than the {} rank{}", replicas, shape.ranks, plural(shape.ranks));
    left -= r;
  }
  if (left > 0)
    return fmt::format("{}: their sum is {}, and the ranks are {}", replicas, shape.ranks - left, shape.ranks);
  for (std::size_t stage = 0; stage < shape.replicas.size(); ++stage) {
    const std::int64_t r = shape.replicas[stage];
    if (shape.microbatches % r != 0)
      return fmt::format("microbatches {}: stage {} takes {} in turn, a multiple of that as {}", shape.microbatches,
                         stage, r, (shape.microbatches / r + 1) * r);
    if (shape.vertical_sync && shape.replicas[0] % r != 0)
      return fmt::format(
          "vertical sync with {}: an update of stage {} is of {} minibatches, which must divide those of "
          "stage 0, {}, as 1 does",
          replicas, stage, r, shape.replicas[0]);
  }
  return "";
}

Schedule generate(const ScheduleShape& shape) {
  Schedule schedule{.send_depth = 1, .weights = shape.vertical_sync ? WeightRule::vertical_sync : WeightRule::stashed};
  std::int64_t before = 0;  // ranks of earlier stages
  for (std::int64_t stage = 0; stage < shape.stages(); ++stage) {
    const std::int64_t replicas = shape.replicas.empty() ? 1 : shape.replicas[static_cast<std::size_t>(stage)];
    const std::int64_t warm_up = (shape.ranks - 1 - before) / replicas;
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      auto& actions = schedule.ranks.emplace_back();
      std::vector<std::int64_t> mine;
      for (std::int64_t k = replica; k < shape.microbatches; k += replicas) mine.push_back(k);
      const std::size_t ahead = std::min(static_cast<std::size_t>(warm_up), mine.size());
      for (std::size_t k = 0; k < mine.size() + ahead; ++k) {
        if (k < mine.size()) actions.push_back({stage, forward, mine[k]});
        if (k < ahead) continue;
        for (const ActionKind kind : {backward, update}) actions.push_back({stage, kind, mine[k - ahead]});
      }
    }
    before += replicas;
  }
  return schedule;
}

}  // namespace

extern const ScheduleGenerator pipedream_technique{
    .name = "pipedream",
    .meaning = "no flush: an update after each microbatch, by old weights (another program)",
    .paper = "Narayanan et al. 2019, section 3",
    .refusal = refusal,
    .generate = generate,
    .stale = workload::StaleProgram::Rule::stashed,
};

}  // namespace shardproof::plan
