// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/replay.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"

namespace shardproof::plan {
namespace {

using Indices = std::vector<std::size_t>;

// What an operation waits for: its dependencies and the one before it on its lane.
std::vector<Indices> waits_of(std::span<const Operation> operations) {
  std::vector<Indices> waits(operations.size());
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> last;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    const Operation& operation = operations[k];
    if (!(operation.cost >= 0)) throw BadInput(fmt::format("replay: operation {} costs {}", k, operation.cost));
    waits[k] = operation.dependencies;
    for (const std::size_t d : waits[k])
      if (d >= operations.size())
        throw BadInput(fmt::format("replay: operation {} depends on {} of {}", k, d, operations.size()));
    const auto [before, is_first] = last.try_emplace({operation.rank, operation.lane}, k);
    if (!is_first) waits[k].push_back(std::exchange(before->second, k));
  }
  return waits;
}

// Some operation is not done. Each of those waits for another of them, so a walk along the waits ends in a circle.
std::string circle(std::span<const Operation> operations, const std::vector<Indices>& waits,
                   const std::vector<bool>& done) {
  Indices path;
  std::size_t at = static_cast<std::size_t>(std::ranges::find(done, false) - done.begin());
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    at = *std::ranges::find_if(waits[at], [&](std::size_t d) { return !done[d]; });
  }
  std::string text = "replay: operations wait for each other:";
  for (auto k = std::ranges::find(path, at); k != path.end(); ++k)
    text += fmt::format(" {} (rank {}, lane {}) for", *k, operations[*k].rank, operations[*k].lane);
  return text + fmt::format(" {}", at);
}

}  // namespace

std::vector<Span> replay(std::span<const Operation> operations) {
  const auto waits = waits_of(operations);
  std::vector<Indices> followers(operations.size());
  std::vector<std::size_t> open(operations.size());
  Indices ready;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    open[k] = waits[k].size();
    for (const std::size_t d : waits[k]) followers[d].push_back(k);
    if (open[k] == 0) ready.push_back(k);
  }
  std::vector<Span> spans(operations.size());
  std::vector<bool> done(operations.size());
  std::size_t count = 0;
  for (; !ready.empty(); ++count) {
    const std::size_t k = ready.back();
    ready.pop_back();
    done[k] = true;
    for (const std::size_t d : waits[k]) spans[k].start = std::max(spans[k].start, spans[d].end);
    spans[k].end = spans[k].start + operations[k].cost;
    for (const std::size_t f : followers[k])
      if (--open[f] == 0) ready.push_back(f);
  }
  if (count < operations.size()) throw BadInput(circle(operations, waits, done));
  return spans;
}

}  // namespace shardproof::plan
