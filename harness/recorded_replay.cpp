// SPDX-License-Identifier: Apache-2.0
#include "harness/recorded_replay.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "harness/exchanges.hpp"
#include "harness/time_account.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

/// A moment of a rank's thread at which something begins or ends.
struct Mark {
  enum class What : std::uint8_t { exchange_end, action_end, step_end, step_start, action_start, exchange_start };
  std::int64_t time, cpu;
  What what;
  std::size_t index;   // of its kind
  bool empty = false;  // the end of a span that begins at the same time

  /// At one time what ends comes before what begins, but for empty spans.
  auto place() const { return std::tuple(time, empty, what); }
};

std::vector<Mark> marks_of(const Spans& rank) {
  using enum Mark::What;
  std::vector<Mark> marks;
  const auto add = [&](const auto& spans, Mark::What start, Mark::What end) {
    for (std::size_t k = 0; k < spans.size(); ++k) {
      marks.push_back({spans[k].start, spans[k].cpu_start, start, k});
      marks.push_back({spans[k].end, spans[k].cpu_end, end, k, spans[k].end == spans[k].start});
    }
  };
  add(rank.steps, step_start, step_end);
  add(rank.actions, action_start, action_end);
  add(rank.exchanges, exchange_start, exchange_end);
  std::ranges::stable_sort(marks, {}, &Mark::place);
  return marks;
}

/// Steps on the wire of the ring algorithm and the part of the payload that each carries.
double seconds_of(const ExchangeSpan& e, const Fabric& fabric) {
  const auto n = static_cast<double>(e.members), bytes = static_cast<double>(e.payload_bytes);
  double hops = 1, carried = bytes;
  if (e.kind == "all_reduce") {
    hops = 2 * (n - 1), carried = 2 * (n - 1) / n * bytes;
  } else if (e.kind == "reduce_scatter" || e.kind == "all_gather" || e.kind == "all_to_all") {
    hops = n - 1, carried = (n - 1) / n * bytes;
  } else if (e.kind == "barrier") {
    carried = 0;
  }
  return hops * fabric.latency_seconds + carried / fabric.bytes_per_second;
}

/// When the first rank has ended its last forward.
double drain_of(std::span<const Spans> ranks, const std::vector<std::vector<plan::Span>>& actions) {
  double drain = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    double last = 0;
    for (std::size_t k = 0; k < actions[r].size(); ++k)
      if (ranks[r].actions[k].kind == 'F') last = std::max(last, actions[r][k].end);
    drain = std::min(drain, last);
  }
  return drain;
}

class Builder {
 public:
  Builder(std::span<const Spans> ranks, const ReplayOptions& options)
      : ranks_(ranks),
        options_(options),
        meetings_(meetings(ranks)),
        waits_(waits(ranks)),
        actions_(ranks.size()),
        step_ends_(ranks.size()) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      begins_.emplace_back(ranks[r].exchanges.size());
      ends_.emplace_back(ranks[r].exchanges.size());
      actions_[r].resize(ranks[r].actions.size());
    }
  }

  Replayed run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) put_rank(r);
    for (const auto& [key, places] : meetings_) join(key, places);
    const auto times = plan::replay(operations_);
    return results(times);
  }

 private:
  using Operations = std::pair<std::size_t, std::size_t>;  // indices: the first of a span, and the first after it

  std::size_t put(std::size_t rank, double cost) {
    operations_.push_back({.rank = static_cast<std::int64_t>(rank), .cost = cost, .dependencies = {}});
    return operations_.size() - 1;
  }

  double seconds(const Mark& from, const Mark& to) const {
    const auto ns = options_.processor_time ? to.cpu - from.cpu : to.time - from.time;
    return 1e-9 * static_cast<double>(std::max<std::int64_t>(ns, 0));
  }

  double exchange_seconds(std::size_t rank, std::size_t k, const Mark& from, const Mark& to) const {
    const auto& exchange = ranks_[rank].exchanges[k];
    if (is_send(exchange)) return 0;  // its bytes move when it is received
    if (options_.fabric) return seconds_of(exchange, *options_.fabric);
    const double all = seconds(from, to);
    return options_.processor_time ? all : std::max(all - 1e-9 * static_cast<double>(waits_[rank][k]), 0.0);
  }

  void put_rank(std::size_t rank) {
    const auto marks = marks_of(ranks_[rank]);
    for (std::size_t m = 0; m < marks.size(); ++m) {
      using enum Mark::What;
      const auto& mark = marks[m];
      const bool in_step = m > 0 && mark.what != step_start;
      if (in_step && mark.what != exchange_end) put(rank, seconds(marks[m - 1], mark));
      switch (mark.what) {
        case step_start: break;
        case action_start: actions_[rank][mark.index].first = operations_.size(); break;
        case action_end: actions_[rank][mark.index].second = operations_.size(); break;
        case exchange_start: begins_[rank][mark.index] = put(rank, 0); break;
        case exchange_end:
          ends_[rank][mark.index] = put(rank, exchange_seconds(rank, mark.index, marks[m - 1], mark));
          break;
        case step_end: step_ends_[rank].push_back(operations_.size() - 1);
      }
    }
  }

  std::int64_t ends_of(const ExchangeSpan& exchange) const { return is_message(exchange) ? 2 : exchange.members; }

  /// Whether all ends of the exchange of the same kind and ranks that comes so many later were recorded, or `send`: of
  /// a message that end.
  bool is_recorded(MeetingKey key, std::int64_t later, std::optional<bool> send) const {
    std::get<3>(key) += later;
    const auto there = meetings_.find(key);
    if (there == meetings_.end()) return false;
    const auto at = [&](const ExchangePlace& p) -> const ExchangeSpan& { return ranks_[p.rank].exchanges[p.index]; };
    if (!send) return std::ssize(there->second) == ends_of(at(there->second.front()));
    return std::ranges::any_of(there->second, [&](const ExchangePlace& place) { return is_send(at(place)) == *send; });
  }

  /// Whether the ends that an exchange lacks lie outside of what was recorded: of a message, it was sent before the
  /// first that was, or is received after the last.
  bool has_others_outside(const MeetingKey& key, const ExchangeSpan& end) const {
    if (!options_.without_flush) return false;
    if (is_message(end)) return !is_recorded(key, is_send(end) ? 1 : -1, !is_send(end));
    return !is_recorded(key, -1, {}) || !is_recorded(key, 1, {});
  }

  void join(const MeetingKey& key, const std::vector<ExchangePlace>& places) {
    const auto& [group, from, to, number] = key;
    const auto at = [&](const ExchangePlace& p) -> const ExchangeSpan& { return ranks_[p.rank].exchanges[p.index]; };
    const auto& first = at(places.front());
    if (std::ssize(places) != ends_of(first) && !has_others_outside(key, first))
      throw BadInput(
          fmt::format("replay: {} {} of {} (purpose {}) lacks an end", first.kind, number, group, first.purpose));
    for (const auto& place : places) {
      auto& end = operations_[ends_[place.rank][place.index]];
      if (!is_send(at(place))) {
        for (const auto& other : places)
          if (other.rank != place.rank) end.dependencies.push_back({begins_[other.rank][other.index]});
        continue;
      }
      const auto taken = meetings_.find({group, from, to, number - options_.send_depth});
      if (taken == meetings_.end()) continue;
      for (const auto& other : taken->second)
        if (!is_send(at(other))) end.dependencies.push_back({ends_[other.rank][other.index]});
    }
  }

  Replayed results(const std::vector<plan::Span>& times) const {
    Replayed result{.step_seconds = {}, .pipeline = {}, .steady = {}, .operations = std::ssize(operations_)};
    std::vector<std::vector<double>> ends(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const auto k : step_ends_[r]) ends[r].push_back(times[k].end);
    double before = 0;
    for (std::size_t step = 0; step < (ranks_.empty() ? 0 : ends[0].size()); ++step) {
      double end = 0;
      for (const auto& rank : ends) end = std::max(end, rank.at(step));
      result.step_seconds.push_back(end - before);
      before = end;
    }
    std::vector<std::vector<plan::Span>> actions(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const auto& [begin, end] : actions_[r]) actions[r].push_back({times[begin - 1].end, times[end - 1].end});
    if (options_.without_flush)
      result.steady = steady_part(actions, ends, drain_of(ranks_, actions), options_.round);
    else
      result.pipeline = parts(ranks_, actions);
    return result;
  }

 public:
  /// `actions`: start and end of each rank's, in seconds of any clock.
  static std::vector<PipelinePart> parts(std::span<const Spans> ranks,
                                         const std::vector<std::vector<plan::Span>>& actions) {
    std::vector<PipelinePart> result(ranks.empty() ? 0 : ranks[0].steps.size());
    std::vector<plan::Span> whole(result.size(), {1e300, -1e300});
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      std::size_t step = 0;
      for (std::size_t k = 0; k < actions[r].size(); ++k) {
        while (step + 1 < result.size() && ranks[r].actions[k].start >= ranks[r].steps[step].end) ++step;
        result[step].busy += actions[r][k].end - actions[r][k].start;
        whole[step].start = std::min(whole[step].start, actions[r][k].start);
        whole[step].end = std::max(whole[step].end, actions[r][k].end);
      }
    }
    for (std::size_t s = 0; s < result.size(); ++s) result[s].makespan = std::max(whole[s].end - whole[s].start, 0.0);
    return result;
  }

 private:
  std::span<const Spans> ranks_;
  const ReplayOptions& options_;
  const std::map<MeetingKey, std::vector<ExchangePlace>> meetings_;
  const std::vector<std::vector<std::int64_t>> waits_;
  std::vector<plan::Operation> operations_;
  std::vector<std::vector<std::size_t>> begins_, ends_;  // operations of each rank's exchanges
  std::vector<std::vector<Operations>> actions_;
  std::vector<std::vector<std::size_t>> step_ends_;  // operations of each rank's
};

plan::Span on_wall(const TimeSpan& span) {
  return {1e-9 * static_cast<double>(span.start), 1e-9 * static_cast<double>(span.end)};
}

std::vector<std::vector<plan::Span>> actions_on_wall(std::span<const Spans> ranks) {
  std::vector<std::vector<plan::Span>> actions(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const auto& action : ranks[r].actions) actions[r].push_back(on_wall(action));
  return actions;
}

}  // namespace

double PipelinePart::bubble_fraction(std::int64_t ranks) const {
  return makespan > 0 ? 1 - busy / (static_cast<double>(ranks) * makespan) : 0;
}

double PipelinePart::bubble_overhead(std::int64_t ranks) const {
  return busy > 0 ? static_cast<double>(ranks) * makespan / busy - 1 : 0;
}

Replayed replay_recorded(std::span<const Spans> ranks, const ReplayOptions& options) {
  return Builder(ranks, options).run();
}

SteadyPart steady_part(const std::vector<std::vector<plan::Span>>& actions,
                       const std::vector<std::vector<double>>& step_ends, double drains, std::int64_t round) {
  SteadyPart part;
  const auto last_of = [](const std::vector<double>& ends) { return ends.empty() ? 0 : ends.back(); };
  const auto pace = std::ranges::min_element(step_ends, {}, last_of);
  if (pace == step_ends.end() || std::ssize(*pace) < round) return part;
  double all_began = 0;
  for (const auto& ends : step_ends) all_began = std::max(all_began, ends.at(static_cast<std::size_t>(round - 1)));
  const auto first = std::ranges::lower_bound(*pace, all_began), after = std::ranges::upper_bound(*pace, drains);
  const auto rounds = (after - first - 1) / round;
  if (rounds < 1) return part;
  part.steps = rounds * round;
  const double start = *first, end = *(first + part.steps);
  part.makespan = end - start;
  for (const auto& rank : actions)
    for (const plan::Span& action : rank)
      part.busy += std::max(std::min(action.end, end) - std::max(action.start, start), 0.0);
  return part;
}

std::vector<PipelinePart> pipeline_on_wall(std::span<const Spans> ranks) {
  return Builder::parts(ranks, actions_on_wall(ranks));
}

SteadyPart steady_on_wall(std::span<const Spans> ranks, std::int64_t round) {
  std::vector<std::vector<double>> ends(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const auto& step : ranks[r].steps) ends[r].push_back(on_wall(step).end);
  const auto actions = actions_on_wall(ranks);
  return steady_part(actions, ends, drain_of(ranks, actions), round);
}

}  // namespace shardproof::harness
