// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/strategy_refusals.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "impl/plan/strategy_table.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

using workload::Workload;
using Ranks = std::optional<std::int64_t>;

/// A list, which may be of any length, is cut.
std::string quoted(const KeyRow& row, const Strategy& s) {
  const bool is_list = std::holds_alternative<std::vector<std::int64_t> Strategy::*>(row.member);
  return is_list ? workload::shortened(written(row, s)) : written(row, s);
}

/// What makes the number of ranks.
std::string axes_of(const Strategy& s) {
  std::string text;
  for (const KeyRow& row : strategy_table()) {
    if ((row.is_axis || row.name == "replicas") && !is_standard(row, s))
      text += fmt::format("{}{}", text.empty() ? "" : " ", quoted(row, s));
  }
  return text.empty() ? "dp1" : text;
}

std::string counted_ranks(std::int64_t n) { return fmt::format("{} rank{}", n, n == 1 ? "" : "s"); }

void require_count(std::int64_t ranks) {
  if (ranks < 1 || ranks > largest_size)
    throw BadInput(fmt::format("{}: the number of ranks must be from 1 to {}", counted_ranks(ranks), largest_size));
}

std::string reason(const KeyRow& row, const Strategy& s, const Workload* workload) {
  if (is_standard(row, s)) return "";
  if (row.no_effect != nullptr)
    if (const auto where = row.no_effect(s); !where.empty())
      return fmt::format("{} has no effect {}", quoted(row, s), where);
  if (row.refused != nullptr && workload != nullptr)
    if (const auto why = row.refused(s, *workload); !why.empty()) return fmt::format("{}: {}", quoted(row, s), why);
  return "";
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// The axes that multiply to `ranks` with the fewest changes, and of those the least change of a size as a factor; where
// two are equal, tp stays, then pp. A free axis may change. Stages are on one rank each.
Strategy with_ranks(const Strategy& s, std::int64_t ranks, const KeyRow* free) {
  const auto factor = [&](const Strategy& c, std::int64_t Strategy::*axis) {
    if (free != nullptr && std::get<std::int64_t Strategy::*>(free->member) == axis) return 0.0;
    return std::abs(std::log(static_cast<double>(c.*axis) / static_cast<double>(s.*axis)));
  };
  const auto distance = [&](const Strategy& c) {
    const double tp = factor(c, &Strategy::tp), pp = factor(c, &Strategy::pp), dp = factor(c, &Strategy::dp);
    return std::tuple((dp > 0) + (pp > 0) + (tp > 0), tp + pp + dp, tp, pp, dp, c.tp, c.pp);
  };
  Strategy best = s;
  best.replicas = {};  // they go with their axis
  best.dp = ranks, best.pp = 1, best.tp = 1;
  for (const std::int64_t tp : divisors(ranks)) {
    for (const std::int64_t pp : divisors(ranks / tp)) {
      Strategy candidate = best;
      candidate.dp = ranks / tp / pp, candidate.pp = pp, candidate.tp = tp;
      if (distance(candidate) < distance(best)) best = candidate;
    }
  }
  return best;
}

/// The same schedule with another number of microbatches, or without clipping where it has no flush; none where it
/// cannot serve either way.
std::optional<Strategy> with_its_schedule(const Strategy& s, const Workload& workload) {
  std::vector<std::int64_t> microbatches = {s.microbatches + 1, s.pp, 2 * s.pp};  // as its rule says, the least first
  if (const auto file = s.schedule.file()) microbatches.push_back(file->microbatches);
  std::erase_if(microbatches, [&](std::int64_t m) { return m <= s.microbatches; });
  std::ranges::sort(microbatches);
  microbatches.insert(microbatches.begin(), s.microbatches);
  microbatches.push_back(1);
  for (const std::optional<double> clip : {s.clip, std::optional(0.0)})
    for (const std::int64_t m : microbatches) {
      Strategy other = s;
      other.clip = clip, other.microbatches = m;
      if (std::ranges::all_of(strategy_table(), [&](const KeyRow& row) {
            return (row.name != "schedule" && row.name != "microbatches") || reason(row, other, &workload).empty();
          }))
        return other;
    }
  return std::nullopt;
}

Strategy nearest(Strategy s, const Workload* workload, Ranks ranks, const KeyRow* free = nullptr) {
  if (ranks) require_count(*ranks);
  // A key at its default may make another one illegal: layers that kept a shared block on one stage.
  for (bool changes = true; changes;) {
    changes = ranks && s.ranks() != *ranks;
    if (changes) s = with_ranks(s, *ranks, free);
    for (const KeyRow& row : strategy_table()) {
      if (reason(row, s, workload).empty()) continue;
      const auto other = row.name == "schedule" && workload != nullptr ? with_its_schedule(s, *workload) : std::nullopt;
      if (other)
        s = *other;
      else
        set_standard(row, s);
      changes = true;
    }
  }
  return s;
}

std::string named(const Strategy& nearest) { return fmt::format("; the nearest legal strategy is {}", print(nearest)); }

}  // namespace

void take_rest(Strategy& strategy, const KeyRow& axis, std::int64_t ranks) {
  const std::int64_t others = strategy.ranks();
  require_count(ranks);
  if (ranks % others != 0) {
    throw NotSupported(fmt::format("{}* with {}: {} does not divide {}{}", axis.name, axes_of(strategy), others,
                                   counted_ranks(ranks), named(nearest(strategy, nullptr, ranks, &axis))));
  }
  strategy.*std::get<std::int64_t Strategy::*>(axis.member) = ranks / others;
}

std::vector<Refusal> refusals(const Strategy& strategy, const Workload& workload, Ranks ranks) {
  std::vector<Refusal> found;
  if (ranks && strategy.ranks() != *ranks)
    found.push_back({"ranks", fmt::format("{} is {}, there {} {}", axes_of(strategy), counted_ranks(strategy.ranks()),
                                          *ranks == 1 ? "is" : "are", *ranks)});
  for (const KeyRow& row : strategy_table())
    if (auto why = reason(row, strategy, &workload); !why.empty()) found.push_back({std::string(row.name), why});
  return found;
}

Strategy nearest_legal(const Strategy& strategy, const Workload& workload, Ranks ranks) {
  return nearest(strategy, &workload, ranks);
}

void require_legal(const Strategy& strategy, const Workload& workload, Ranks ranks) {
  std::string text;
  for (const Refusal& refusal : refusals(strategy, workload, ranks))
    text += fmt::format("{}{}", text.empty() ? "" : "\n", refusal.reason);
  if (!text.empty()) throw NotSupported(text + named(nearest_legal(strategy, workload, ranks)));
}

}  // namespace shardproof::plan
