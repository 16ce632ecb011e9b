// SPDX-License-Identifier: Apache-2.0
#include "harness/suite_space.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <variant>

#include <fmt/format.h>

#include "harness/pairwise.hpp"
#include "harness/signals.hpp"
#include "impl/plan/strategy_table.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"
#include "kernels/core/scalar.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

namespace {

/// One level of each factor: the workload, the settings, the strategy's keys.
using Row = std::span<const std::size_t>;

constexpr std::size_t most_kept = 10'000;  // workloads that have been read

class Expander {
 public:
  explicit Expander(const Space& space) : space_(space) {}

  std::vector<std::size_t> levels() const {
    std::vector<std::size_t> levels = {space_.workloads.size()};
    for (const auto& factor : space_.settings) levels.push_back(factor.size());
    for (const auto& factor : space_.strategy) levels.push_back(factor.levels.size());
    return levels;
  }

  bool is_legal(Row row) {
    stop_if_interrupted();
    if (space_.strategy.empty()) return true;
    const plan::Strategy strategy = strategy_of(row);
    if (strategy.ranks() > space_.most_ranks) return false;
    return plan::refusals(strategy, workload_of(row)).empty();
  }

  void add_cases(Row row, std::vector<Case>& cases) const {
    std::vector<GivenStrategy> given = space_.given;
    if (given.empty()) {
      const plan::Strategy strategy = strategy_of(row);
      given.push_back({plan::print(strategy), strategy.ranks()});
    }
    for (const auto& strategy : given)
      for (const auto track : space_.tracks)
        cases.push_back({.workload = space_.workloads[row[0]],
                         .settings = settings_of(row),
                         .strategy = strategy.strategy,
                         .ranks = strategy.ranks,
                         .track = track});
  }

 private:
  plan::Strategy strategy_of(Row row) const {
    const auto keys = row.subspan(1 + space_.settings.size());
    plan::Strategy strategy;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const auto& factor = space_.strategy[k];
      const auto& level = factor.levels[keys[k]];
      std::visit([&](auto member) { strategy.*member = level.*member; }, factor.row->member);
    }
    return strategy;
  }

  std::vector<std::string> settings_of(Row row) const {
    auto settings = space_.fixed;
    for (std::size_t k = 0; k < space_.settings.size(); ++k) settings.push_back(space_.settings[k][row[k + 1]]);
    if (!space_.steps.empty()) settings.push_back(space_.steps);
    return settings;
  }

  const workload::Workload& workload_of(Row row) {
    const auto own = row.first(1 + space_.settings.size());
    const Combination key(own.begin(), own.end());
    const auto found = workloads_.find(key);
    if (found != workloads_.end()) return found->second;
    if (workloads_.size() == most_kept) workloads_.clear();
    return workloads_.emplace(key, workload::load(space_.workloads[row[0]], settings_of(row))).first->second;
  }

  const Space& space_;
  std::map<Combination, workload::Workload> workloads_;
};

/// In the order in which the last factor's levels change first.
std::vector<Combination> every(const std::vector<std::size_t>& levels, Expander& expander) {
  std::vector<Combination> rows;
  Combination row(levels.size(), 0);
  for (std::size_t f = row.size(); f > 0;) {
    if (expander.is_legal(row)) rows.push_back(row);
    for (f = row.size(); f > 0 && ++row[f - 1] == levels[f - 1]; --f) row[f - 1] = 0;
  }
  return rows;
}

}  // namespace

StrategyFactor strategy_factor(std::string_view key, const std::vector<std::string>& values) {
  const auto table = plan::strategy_table();
  const auto row = std::ranges::find(table, key, &plan::KeyRow::name);
  if (row == table.end()) {
    std::vector<std::string> names;
    for (const auto& known : table) names.emplace_back(known.name);
    throw BadInput(unknown("strategy key", key, names));
  }
  StrategyFactor factor{&*row, {}};
  for (const auto& value : values) {
    factor.levels.push_back(value.empty()
                                ? plan::Strategy{}
                                : plan::parse_strategy(fmt::format("{}{}{}", key, row->is_axis ? "" : "=", value)));
  }
  return factor;
}

Expanded expand(const Space& space, bool pairs) {
  Expander expander(space);
  Expanded result;
  std::vector<Combination> rows;
  const auto levels = expander.levels();
  if (pairs) {
    auto array = covering_array(
        levels, [&](Row row) { return expander.is_legal(row); }, 1);
    result.covered = array.covered, result.legal = array.legal;
    rows = std::move(array.rows);
  } else {
    rows = every(levels, expander);
  }
  for (const auto& row : rows) expander.add_cases(row, result.cases);
  return result;
}

double size_of(const Space& space) {
  auto size = static_cast<double>(std::max<std::size_t>(space.given.size(), 1) * space.tracks.size());
  for (const auto levels : Expander(space).levels()) size *= static_cast<double>(levels);
  return size;
}

double pairs_of(const Space& space) {
  double pairs = 0, before = 0;
  for (const auto levels : Expander(space).levels()) {
    pairs += before * static_cast<double>(levels);
    before += static_cast<double>(levels);
  }
  return pairs;
}

/// Steps through the combinations by the golden ratio of their number, made prime to it: a walk that meets each once,
/// and whose points are spread as evenly as points of a beginning can be (Knuth 1973, section 6.4, theorem S).
struct Grid::Impl {
  Impl(const Space& space, std::int64_t shard_, std::int64_t shards_)
      : expander(space), levels(expander.levels()), shards(static_cast<std::uint64_t>(shards_)) {
    double all = 1;
    for (const auto n : levels) all *= static_cast<double>(n), size *= n;
    if (all > 0x1p62) throw BadInput(fmt::format("a grid has {:.3g} combinations; at most 2^62 are legal", all));
    stride = static_cast<std::uint64_t>(0.6180339887498949 * all);
    while (std::gcd(stride, size) != 1) ++stride;
    walk(static_cast<std::uint64_t>(shard_ - 1));
  }

  void walk(std::uint64_t steps) {
    index += steps;
    if (index < size) position = static_cast<std::uint64_t>(uint128{index} * stride % size);
  }

  Combination row() const {
    Combination row(levels.size());
    std::uint64_t rest = position;
    for (std::size_t f = levels.size(); f-- > 0; rest /= levels[f]) row[f] = rest % levels[f];
    return row;
  }

  Expander expander;
  const std::vector<std::size_t> levels;
  const std::uint64_t shards;
  std::uint64_t size = 1, stride = 0;
  std::uint64_t index = 0, position = 0;  // of the next: in their order, and where it lies
};

Grid::Grid(const Space& space, std::int64_t shard, std::int64_t shards)
    : impl_(std::make_unique<Impl>(space, shard, shards)) {}
Grid::Grid(Grid&& other) noexcept = default;
Grid::~Grid() = default;

std::optional<std::vector<Case>> Grid::next() {
  if (impl_->index >= impl_->size) return std::nullopt;
  std::vector<Case> cases;
  const Combination row = impl_->row();
  if (impl_->expander.is_legal(row)) impl_->expander.add_cases(row, cases);
  impl_->walk(impl_->shards);
  return cases;
}

}  // namespace shardproof::harness
