// SPDX-License-Identifier: Apache-2.0
#include "harness/time_account.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/exchanges.hpp"

namespace shardproof::harness {
namespace {

/// In the order of TimeAccount.
enum class Lane : std::uint8_t { compute, copy, communication, wait };
constexpr std::size_t lane_count = 4;

struct Change {
  std::int64_t time;
  Lane lane;
  int by;  // +1 at a start, -1 at an end
};

void add(std::vector<Change>& changes, Lane lane, std::int64_t start, std::int64_t end) {
  if (end <= start) return;
  changes.push_back({start, lane, 1});
  changes.push_back({end, lane, -1});
}

std::vector<Change> changes_of(const Spans& rank, const std::vector<std::int64_t>& waits) {
  std::vector<Change> changes;
  for (const auto& kernel : rank.kernels)
    add(changes, is_copy(kernel) ? Lane::copy : Lane::compute, kernel.start, kernel.end);
  for (std::size_t k = 0; k < rank.exchanges.size(); ++k) {
    const auto& exchange = rank.exchanges[k];
    // It lies inside a kernel of its own thread, which is not computing meanwhile.
    changes.push_back({exchange.start, Lane::compute, -1});
    changes.push_back({exchange.end, Lane::compute, 1});
    add(changes, Lane::wait, exchange.start, exchange.start + waits[k]);
    add(changes, Lane::communication, exchange.start + waits[k], exchange.end);
  }
  std::ranges::stable_sort(changes, {}, &Change::time);
  return changes;
}

std::int64_t cpu_outside_kernels(const Spans& rank, const StepSpan& step) {
  std::int64_t cpu = step.cpu_end - step.cpu_start;
  for (const auto& kernel : rank.kernels)
    if (kernel.thread == step.thread && kernel.start >= step.start && kernel.end <= step.end)
      cpu -= kernel.cpu_end - kernel.cpu_start;
  return cpu;
}

}  // namespace

std::vector<std::vector<std::int64_t>> waits(std::span<const Spans> ranks) {
  std::vector<std::vector<std::int64_t>> result;
  for (const auto& rank : ranks) result.emplace_back(rank.exchanges.size());
  for (const auto& [key, places] : meetings(ranks)) {
    const auto at = [&](const ExchangePlace& p) -> const ExchangeSpan& { return ranks[p.rank].exchanges[p.index]; };
    std::int64_t all_there = 0;  // when the last of those who are waited for has come
    for (const auto& place : places)
      if (!is_message(at(place)) || is_send(at(place))) all_there = std::max(all_there, at(place).start);
    for (const auto& place : places) {
      const auto& exchange = at(place);
      const auto length = exchange.end - exchange.start;
      result[place.rank][place.index] =
          is_send(exchange) ? length : std::clamp<std::int64_t>(all_there - exchange.start, 0, length);
    }
  }
  return result;
}

std::vector<std::vector<TimeAccount>> time_accounts(std::span<const Spans> ranks) {
  const auto waiting = waits(ranks);
  std::vector<std::vector<TimeAccount>> result;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto changes = changes_of(ranks[r], waiting[r]);
    auto change = changes.begin();
    std::array<int, lane_count> active{};
    auto& accounts = result.emplace_back();
    for (const auto& step : ranks[r].steps) {
      auto& account = accounts.emplace_back();
      account.engine = 1e-9 * static_cast<double>(cpu_outside_kernels(ranks[r], step));
      const std::array<double*, lane_count> seconds = {&account.compute, &account.copy, &account.communication,
                                                       &account.wait};
      for (auto now = step.start; now < step.end;) {
        for (; change != changes.end() && change->time <= now; ++change)
          active[static_cast<std::size_t>(change->lane)] += change->by;
        const auto next = change == changes.end() ? step.end : std::min(change->time, step.end);
        const auto lane = std::ranges::find_if(active, [](int n) { return n > 0; }) - active.begin();
        auto& sum = lane < std::ssize(active) ? *seconds[static_cast<std::size_t>(lane)] : account.host;
        sum += 1e-9 * static_cast<double>(next - now);
        now = next;
      }
    }
  }
  return result;
}

}  // namespace shardproof::harness
