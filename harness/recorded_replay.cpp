// SPDX-License-Identifier: Apache-2.0
#include "harness/recorded_replay.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "harness/exchanges.hpp"
#include "harness/time_account.hpp"
#include "impl/plan/replay.hpp"
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

class Builder {
 public:
  Builder(std::span<const Spans> ranks, const ReplayOptions& options)
      : ranks_(ranks), options_(options), meetings_(meetings(ranks)), waits_(waits(ranks)), actions_(ranks.size()) {
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
        case step_end:
          step_ends_.resize(std::max(step_ends_.size(), mark.index + 1));
          step_ends_[mark.index].push_back(operations_.size() - 1);
      }
    }
  }

  void join(const MeetingKey& key, const std::vector<ExchangePlace>& places) {
    const auto& [group, from, to, number] = key;
    const auto at = [&](const ExchangePlace& p) -> const ExchangeSpan& { return ranks_[p.rank].exchanges[p.index]; };
    const auto& first = at(places.front());
    if (std::ssize(places) != (is_message(first) ? 2 : first.members))
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
    Replayed result{.step_seconds = {}, .pipeline = {}, .operations = std::ssize(operations_)};
    double before = 0;
    for (const auto& step : step_ends_) {
      double end = 0;
      for (const auto k : step) end = std::max(end, times[k].end);
      result.step_seconds.push_back(end - before);
      before = end;
    }
    std::vector<std::vector<plan::Span>> actions(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const auto& [begin, end] : actions_[r]) actions[r].push_back({times[begin - 1].end, times[end - 1].end});
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
  std::vector<std::vector<std::size_t>> step_ends_;  // of each step, one on each rank
};

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

std::vector<PipelinePart> pipeline_on_wall(std::span<const Spans> ranks) {
  std::vector<std::vector<plan::Span>> actions(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const auto& action : ranks[r].actions)
      actions[r].push_back({1e-9 * static_cast<double>(action.start), 1e-9 * static_cast<double>(action.end)});
  return Builder::parts(ranks, actions);
}

}  // namespace shardproof::harness
