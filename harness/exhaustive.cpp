// SPDX-License-Identifier: Apache-2.0
#include "harness/exhaustive.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "harness/text.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

constexpr std::int64_t sampled = 1000;  // combinations of a grid

/// A combination stands for a case with each of these.
double cases_of_one(const Space& space) {
  return static_cast<double>(std::max<std::size_t>(space.given.size(), 1) * space.tracks.size());
}

bool is_chosen(const Entry& entry, const Selection& selection) {
  if (selection.filters.empty()) return true;
  return std::ranges::any_of(selection.filters,
                             [&](const std::string& filter) { return workload::matches(filter, entry.name); });
}

std::string legal_share(const Space& space) {
  Grid grid(space, 1, 1);
  std::int64_t looked_at = 0, legal = 0;
  for (; looked_at < sampled; ++looked_at) {
    const auto cases = grid.next();
    if (!cases) break;
    legal += cases->empty() ? 0 : 1;
  }
  const double share = static_cast<double>(legal) / static_cast<double>(looked_at), all = size_of(space);
  if (looked_at < sampled) return fmt::format("{} legal", static_cast<double>(legal) * cases_of_one(space));
  if (legal == 0) return fmt::format("less than {:.1g} legal", all / static_cast<double>(sampled));
  return fmt::format("about {:.2g} legal", share * all);
}

}  // namespace

Exhaustive::Exhaustive(const Suite& suite, const Selection& selection) : selection_(selection) {
  std::int64_t matching = 0;
  for (const auto& entry : suite.entries) {
    if (!is_chosen(entry, selection)) continue;
    if (entry.space == nullptr) {
      for (const auto& value : entry.cases) {
        if (selection.track && *selection.track != value.track) continue;
        if (matching++ % selection.shards == selection.shard - 1) plain_.push_back({&entry, &value});
      }
      continue;
    }
    Space space = *entry.space;
    if (selection.track) std::erase_if(space.tracks, [&](Track track) { return track != *selection.track; });
    if (space.tracks.empty()) continue;
    Entry whole = entry;
    whole.cases.clear();
    whole.space = std::make_shared<const Space>(std::move(space));
    if (whole.unsupported > 0) whole.unsupported = std::numeric_limits<std::int64_t>::max();
    const Space& kept = *whole.space;
    walks_.push_back({std::move(whole), size_of(kept), Grid(kept, selection.shard, selection.shards)});
  }
  if (walks_.empty())
    throw BadInput(
        fmt::format("--exhaustive has no effect: no entry of suite {} that is selected covers pairs (a filter is the "
                    "name of an entry here)",
                    suite.name));
}

std::optional<Selected> Exhaustive::next() {
  if (next_plain_ < plain_.size()) return plain_[next_plain_++];
  while (std::ranges::any_of(walks_, [](const Walk& walk) { return !walk.ended; })) {
    Walk& walk = walks_[turn_];
    while (walk.ready.empty() && !walk.ended) {
      auto cases = walk.grid.next();
      walk.ended = !cases;
      if (!cases) break;
      looked_at_ += cases_of_one(*walk.entry.space);
      walk.ready.assign(std::make_move_iterator(cases->begin()), std::make_move_iterator(cases->end()));
    }
    if (walk.ready.empty()) {
      turn_ = (turn_ + 1) % walks_.size();
      continue;
    }
    made_.push_back(std::move(walk.ready.front()));
    walk.ready.pop_front();
    turn_ = (turn_ + 1) % walks_.size();
    return Selected{&walk.entry, &made_.back()};
  }
  return std::nullopt;
}

std::string Exhaustive::sizes() const {
  std::vector<std::vector<std::string>> rows = {{"grid", "cases", "of them"}};
  for (const auto& walk : walks_)
    rows.push_back({walk.entry.name, fmt::format("{:.0f}", walk.size), legal_share(*walk.entry.space)});
  const std::string shard =
      selection_.shards > 1 ? fmt::format("; of these, shard {} of {}", selection_.shard, selection_.shards) : "";
  return table(rows) + fmt::format("and the entries without a grid{}\n", shard);
}

std::string Exhaustive::report() const {
  double all = 0;
  for (const auto& walk : walks_) all += walk.size;
  const bool ended = std::ranges::all_of(walks_, &Walk::ended);
  const std::string shard =
      selection_.shards > 1 ? fmt::format(" of shard {} of {}", selection_.shard, selection_.shards) : "";
  return fmt::format("grids  {:.0f} of {:.0f} cases looked at{}, {} of them legal\n", looked_at_, all,
                     ended ? ", to the end" + shard : shard, made_.size());
}

}  // namespace shardproof::harness
