// SPDX-License-Identifier: Apache-2.0
#include "harness/pairwise.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/core/philox.hpp"

namespace shardproof::harness {

namespace {

constexpr int random_tries = 4000, starts = 24, candidates = 12;

struct Pair {
  std::size_t f, a, g, b;  ///< level a of factor f with level b of factor g; f < g, or f == g for a single factor
};

class Search {
 public:
  Search(std::span<const std::size_t> levels, const std::function<bool(std::span<const std::size_t>)>& legal,
         std::uint64_t seed)
      : levels_(levels.begin(), levels.end()), legal_(legal), stream_(seed, "covering_array") {
    for (const auto n : levels_) first_.push_back(std::exchange(count_, count_ + n));
    uncovered_.assign(count_ * count_, false);
  }

  CoveringArray run() {
    find_legal_pairs();
    CoveringArray array;
    array.legal = std::ssize(pairs_);
    for (const auto& [pair, witness] : pairs_) {
      if (!uncovered_[index(pair)]) continue;
      Combination best = witness;
      for (int k = 0; k < candidates; ++k) {
        Combination row = improved(witness, pair);
        if (gain(row) > gain(best)) best = std::move(row);
      }
      array.covered += gain(best);
      each_pair(best, [&](const Pair& p) { uncovered_[index(p)] = false; });
      array.rows.push_back(std::move(best));
    }
    return array;
  }

 private:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((std::uint64_t{stream_.word(next_++)} * n) >> 32);
  }

  std::vector<std::size_t> shuffled_factors() {
    std::vector<std::size_t> order(levels_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[below(k)]);
    return order;
  }

  std::size_t index(const Pair& p) const { return (first_[p.f] + p.a) * count_ + first_[p.g] + p.b; }

  std::vector<Pair> every_pair() const {
    std::vector<Pair> pairs;
    const auto factors = levels_.size();
    for (std::size_t a = 0; factors == 1 && a < levels_[0]; ++a) pairs.push_back({0, a, 0, a});
    for (std::size_t f = 0; f < factors; ++f) {
      for (std::size_t g = f + 1; g < factors; ++g) {
        for (std::size_t a = 0; a < levels_[f]; ++a) {
          for (std::size_t b = 0; b < levels_[g]; ++b) pairs.push_back({f, a, g, b});
        }
      }
    }
    return pairs;
  }

  template <class F>
  void each_pair(const Combination& row, F use) const {
    if (row.size() == 1) use(Pair{0, row[0], 0, row[0]});
    for (std::size_t f = 0; f < row.size(); ++f) {
      for (std::size_t g = f + 1; g < row.size(); ++g) use(Pair{f, row[f], g, row[g]});
    }
  }

  std::int64_t gain(const Combination& row) const {
    std::int64_t n = 0;
    each_pair(row, [&](const Pair& p) { n += uncovered_[index(p)] ? 1 : 0; });
    return n;
  }

  bool is_legal(const Combination& row) { return legal_(row); }

  void find_legal_pairs() {
    std::vector<bool> seen(count_ * count_, false);
    const auto learn = [&](const Combination& row) {
      bool is_new = false;
      each_pair(row, [&](const Pair& p) {
        if (seen[index(p)]) return;
        seen[index(p)] = is_new = true;
        pairs_.emplace_back(p, row);
      });
      if (is_new) pool_.push_back(row);
    };
    Combination row(levels_.size());
    for (int k = 0; k < random_tries; ++k) {
      for (std::size_t f = 0; f < row.size(); ++f) row[f] = below(levels_[f]);
      if (is_legal(row)) learn(row);
    }
    for (bool found = !pool_.empty(); found;) {  // a new row may make others reachable
      found = false;
      for (const Pair& pair : every_pair()) {
        if (seen[index(pair)]) continue;
        if (const auto near = reach(pair)) learn(*near), found = true;
      }
    }
    for (const auto& [pair, witness] : pairs_) uncovered_[index(pair)] = true;
  }

  /// A legal combination with the pair, near a known one that has one half of it.
  std::optional<Combination> reach(const Pair& pair) {
    std::vector<Combination> near;
    for (const auto& row : pool_) {
      if (row[pair.f] == pair.a || row[pair.g] == pair.b) near.push_back(row);
    }
    for (std::size_t k = near.size(); k > 1; --k) std::swap(near[k - 1], near[below(k)]);
    if (near.size() > starts) near.resize(starts);
    for (auto& row : near) {
      row[pair.f] = pair.a, row[pair.g] = pair.b;
      if (is_legal(row)) return row;
    }
    for (int depth = 1; depth <= 2; ++depth) {
      for (auto& row : near) {
        if (change(row, pair, 0, depth)) return row;
      }
    }
    return std::nullopt;
  }

  /// Makes the row legal by changes of `depth` factors from `from` on that are not the pair's.
  bool change(Combination& row, const Pair& pair, std::size_t from, int depth) {
    for (std::size_t f = from; f < row.size(); ++f) {
      if (f == pair.f || f == pair.g) continue;
      const auto before = row[f];
      for (std::size_t level = 0; level < levels_[f]; ++level) {
        if (level == before) continue;
        row[f] = level;
        if (depth == 1 ? is_legal(row) : change(row, pair, f + 1, depth - 1)) return true;
      }
      row[f] = before;
    }
    return false;
  }

  /// Climbs from the witness, which keeps the pair, to more open pairs.
  Combination improved(Combination row, const Pair& pair) {
    for (bool better = true; better;) {
      better = false;
      for (const auto f : shuffled_factors()) {
        if (f == pair.f || f == pair.g) continue;
        std::vector<std::pair<std::int64_t, std::size_t>> ranked;
        const auto before = row[f];
        const auto now = gain(row);
        for (std::size_t level = 0; level < levels_[f]; ++level) {
          row[f] = level;
          if (const auto n = gain(row); n > now) ranked.emplace_back(-n, level);
        }
        row[f] = before;
        std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
        for (const auto& [n, level] : ranked) {
          row[f] = level;
          if (is_legal(row)) {
            better = true;
            break;
          }
          row[f] = before;
        }
      }
    }
    return row;
  }

  std::vector<std::size_t> levels_, first_;
  std::size_t count_ = 0;  // levels of all factors
  const std::function<bool(std::span<const std::size_t>)>& legal_;
  RandomStream stream_;
  std::uint64_t next_ = 0;
  std::vector<std::pair<Pair, Combination>> pairs_;  // legal ones, with a combination that has them
  std::vector<Combination> pool_;                    // of those, each once
  std::vector<bool> uncovered_;
};

}  // namespace

CoveringArray covering_array(std::span<const std::size_t> levels,
                             const std::function<bool(std::span<const std::size_t>)>& legal, std::uint64_t seed) {
  if (levels.empty()) return legal({}) ? CoveringArray{{{}}, 0, 0} : CoveringArray{};
  return Search(levels, legal, seed).run();
}

}  // namespace shardproof::harness
