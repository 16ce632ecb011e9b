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
constexpr auto none = static_cast<std::size_t>(-1);

// Of each operation the one before it on its lane.
Indices before_on_lanes(std::span<const Operation> operations) {
  Indices before(operations.size(), none);
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> last;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    const Operation& operation = operations[k];
    if (!(operation.cost >= 0)) throw BadInput(fmt::format("replay: operation {} costs {}", k, operation.cost));
    for (const auto& [other, latency] : operation.dependencies) {
      if (other >= operations.size())
        throw BadInput(fmt::format("replay: operation {} depends on {} of {}", k, other, operations.size()));
      if (!(latency >= 0))
        throw BadInput(fmt::format("replay: operation {} has latency {} after {}", k, latency, other));
    }
    const auto [there, is_first] = last.try_emplace({operation.rank, operation.lane}, k);
    if (!is_first) before[k] = std::exchange(there->second, k);
  }
  return before;
}

// Those that depend on each operation, one after the other.
class Followers {
 public:
  explicit Followers(std::span<const Operation> operations) : first_(operations.size() + 1) {
    for (const Operation& operation : operations)
      for (const Dependency& d : operation.dependencies) ++first_[d.operation + 1];
    for (std::size_t k = 0; k < operations.size(); ++k) first_[k + 1] += first_[k];
    all_.resize(first_.back());
    Indices next(first_.begin(), first_.end() - 1);
    for (std::size_t k = 0; k < operations.size(); ++k)
      for (const Dependency& d : operations[k].dependencies) all_[next[d.operation]++] = k;
  }
  std::span<const std::size_t> of(std::size_t k) const {
    return std::span(all_).subspan(first_[k], first_[k + 1] - first_[k]);
  }

 private:
  Indices first_, all_;
};

// Some operation is not done. Each of those waits for another of them, so a walk along the waits ends in a circle.
std::string circle(std::span<const Operation> operations, const Indices& before, const std::vector<bool>& done) {
  Indices path;
  std::vector<bool> walked(operations.size());
  std::size_t at = static_cast<std::size_t>(std::ranges::find(done, false) - done.begin());
  while (!walked[at]) {
    walked[at] = true;
    path.push_back(at);
    const auto& waits = operations[at].dependencies;
    const auto open = std::ranges::find_if(waits, [&](const Dependency& d) { return !done[d.operation]; });
    at = open == waits.end() ? before[at] : open->operation;
  }
  std::string text = "replay: operations wait for each other:";
  for (auto k = std::ranges::find(path, at); k != path.end(); ++k)
    text += fmt::format(" {} (rank {}, lane {}) for", *k, operations[*k].rank, operations[*k].lane);
  return text + fmt::format(" {}", at);
}

}  // namespace

std::vector<Span> replay(std::span<const Operation> operations) {
  const Indices before = before_on_lanes(operations);
  const Followers followers(operations);
  std::vector<std::size_t> open(operations.size()), after(operations.size(), none);
  Indices ready;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    open[k] = operations[k].dependencies.size() + (before[k] == none ? 0 : 1);
    if (before[k] != none) after[before[k]] = k;
    if (open[k] == 0) ready.push_back(k);
  }
  std::vector<Span> spans(operations.size());
  std::vector<bool> done(operations.size());
  std::size_t count = 0;
  for (; !ready.empty(); ++count) {
    const std::size_t k = ready.back();
    ready.pop_back();
    done[k] = true;
    const Operation& operation = operations[k];
    double start = before[k] == none ? 0 : spans[before[k]].end;
    for (const auto& [other, latency] : operation.dependencies) start = std::max(start, spans[other].end + latency);
    spans[k] = {start, start + operation.cost};
    for (const std::size_t f : followers.of(k))
      if (--open[f] == 0) ready.push_back(f);
    if (after[k] != none && --open[after[k]] == 0) ready.push_back(after[k]);
  }
  if (count < operations.size()) throw BadInput(circle(operations, before, done));
  return spans;
}

}  // namespace shardproof::plan
