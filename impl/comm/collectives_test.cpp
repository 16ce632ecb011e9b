// SPDX-License-Identifier: Apache-2.0
// Every collective against sequential integer arithmetic.
#include <algorithm>
#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::expected, testing::for_each_type, testing::Node, testing::on_ranks, testing::put, testing::same,
    testing::values;
using Counts = std::vector<std::int64_t>;

constexpr Operator operators[] = {Operator::sum, Operator::max, Operator::min, Operator::bit_or};

template <class T>
constexpr bool has(Operator op) {
  return op != Operator::bit_or || std::is_integral_v<T>;
}

Counts iota(std::int64_t n) {
  Counts all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::int64_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

/// Unequal counts with zeros among them; `variant` 0 is all zeros.
Counts counts_of(std::int64_t n, std::int64_t variant) {
  Counts counts;
  for (std::int64_t k = 0; k < n; ++k) counts.push_back((k * 5 + variant) % 4 * variant % 23);
  return counts;
}

/// Every number of ranks, with a chunk limit above and below the sizes, quiet and with delays. On processes: where each
/// has one rank, and where one has more than the others.
template <class F>
void everywhere(F f) {
  for (std::int64_t ranks = 1; ranks <= 6; ++ranks) {
    const std::int64_t processes = testing::job == nullptr ? 0 : testing::job->size();
    if (processes > 0 && ranks != processes && ranks != processes + 1) continue;
    for (const std::int64_t chunk : {std::int64_t{1} << 31, std::int64_t{7}}) {
      on_ranks(ranks, {.chunk_elements = chunk}, f);
    }
  }
  for (const std::uint64_t seed : {1, 2}) on_ranks(3, {.delays = seed, .chunk_elements = 7}, f);
}

/// Sizes around cache lines, vectors and blocks; all of 0..70 where it is cheap.
template <class F>
void for_each_size(const Node& node, std::int64_t last, F f) {
  for (std::int64_t n = 0; n <= (testing::job == nullptr ? last : 13); ++n) f(n);
  if (node.world.size() % 2 == 1) return;
  for (const std::int64_t n : {1023, 1024, 1025, 2047, 2049, 6143, 8193}) f(n);
}

TEST(Collectives, AllReduce) {
  everywhere([](Node& node) {
    auto group = node.world.all("test");
    const auto ranks = iota(group.size());
    for_each_type([&]<class T>(T) {
      for (const auto op : operators) {
        if (!has<T>(op)) continue;
        for_each_size(node, op == Operator::sum ? 70 : 13, [&](std::int64_t n) {
          const auto tensor = put(node.queue, "t", {n}, values<T>(node.rank, n));
          group.all_reduce(node.queue, tensor, op, "p").wait();
          std::vector<T> right;
          for (std::int64_t i = 0; i < n; ++i) right.push_back(expected<T>(ranks, i, op));
          ASSERT_TRUE(same(fetch<T>(node.queue, tensor), right))
              << name_of(dtype_of<T>()) << ' ' << name_of(op) << ' ' << n;
        });
      }
    });
    EXPECT_FALSE(node.device.overflow());
  });
}

TEST(Collectives, ReduceScatter) {
  everywhere([](Node& node) {
    auto group = node.world.all("test");
    for_each_type([&]<class T>(T) {
      for (const auto op : operators) {
        for (std::int64_t variant = 0; has<T>(op) && variant < 24; ++variant) {
          const auto counts = counts_of(group.size(), variant);
          const auto begin = sum({counts.begin(), counts.begin() + node.rank});
          const auto count = counts[static_cast<std::size_t>(node.rank)];
          const auto input = put(node.queue, "in", {sum(counts)}, values<T>(node.rank, sum(counts)));
          const bool in_place = variant % 3 == 0;
          const auto output = in_place ? input.rows(begin, count)
                                       : Tensor(node.queue, {"out", dtype_of<T>(), {count}, Category::workspace});
          group.reduce_scatter(node.queue, input, output, counts, op, "p");
          std::vector<T> right;
          for (std::int64_t i = 0; i < count; ++i) right.push_back(expected<T>(iota(group.size()), begin + i, op));
          ASSERT_TRUE(same(fetch<T>(node.queue, output), right))
              << name_of(dtype_of<T>()) << ' ' << name_of(op) << ' ' << variant;
          ASSERT_TRUE(in_place || same(fetch<T>(node.queue, input), values<T>(node.rank, sum(counts))));
        }
      }
    });
  });
}

TEST(Collectives, AllGather) {
  everywhere([](Node& node) {
    auto group = node.world.all("test");
    for_each_type([&]<class T>(T) {
      for (std::int64_t variant = 0; variant < 24; ++variant) {
        const auto counts = counts_of(group.size(), variant);
        const auto begin = sum({counts.begin(), counts.begin() + node.rank});
        const auto count = counts[static_cast<std::size_t>(node.rank)];
        const Tensor output(node.queue, {"out", dtype_of<T>(), {sum(counts)}, Category::workspace});
        auto input = put(node.queue, "in", {count}, values<T>(node.rank, count));
        if (variant % 3 == 0) {
          copy(node.queue, input, output.rows(begin, count));
          input = output.rows(begin, count);
        }
        group.all_gather(node.queue, input, output, counts, "p");
        std::vector<T> right;
        for (std::int64_t k = 0; k < group.size(); ++k) {
          for (const T v : values<T>(k, counts[static_cast<std::size_t>(k)])) right.push_back(v);
        }
        ASSERT_TRUE(same(fetch<T>(node.queue, output), right)) << name_of(dtype_of<T>()) << ' ' << variant;
      }
    });
  });
}

TEST(Collectives, Broadcast) {
  everywhere([](Node& node) {
    auto group = node.world.all("test");
    for_each_type([&]<class T>(T) {
      for (std::int64_t root = 0; root < group.size(); ++root) {
        for (const std::int64_t n : {0, 1, 6, 7, 8, 29}) {
          const bool is_root = root == node.rank;
          const auto tensor = is_root ? put(node.queue, "t", {n}, values<T>(root, n))
                                      : Tensor(node.queue, {"t", dtype_of<T>(), {n}, Category::workspace});
          group.broadcast(node.queue, tensor, root, "p");
          ASSERT_TRUE(same(fetch<T>(node.queue, tensor), values<T>(root, n)));
        }
      }
    });
  });
}

TEST(Collectives, AllToAll) {
  everywhere([](Node& node) {
    auto group = node.world.all("test");
    const auto count = [](std::int64_t from, std::int64_t to, std::int64_t variant) {
      return (3 * from + to + variant) % 5 * variant % 17;
    };
    for_each_type([&]<class T>(T) {
      for (std::int64_t variant = 0; variant < 12; ++variant) {
        Counts to, from;
        std::vector<T> right;
        for (std::int64_t k = 0; k < group.size(); ++k) {
          to.push_back(count(node.rank, k, variant));
          from.push_back(count(k, node.rank, variant));
          std::int64_t begin = 0;
          for (std::int64_t j = 0; j < node.rank; ++j) begin += count(k, j, variant);
          for (std::int64_t i = 0; i < from.back(); ++i) right.push_back(testing::value<T>(k, begin + i));
        }
        const auto input = put(node.queue, "in", {sum(to)}, values<T>(node.rank, sum(to)));
        const Tensor output(node.queue, {"out", dtype_of<T>(), {sum(from)}, Category::workspace});
        group.all_to_all(node.queue, input, output, to, from, "p");
        ASSERT_TRUE(same(fetch<T>(node.queue, output), right)) << name_of(dtype_of<T>()) << ' ' << variant;
      }
    });
  });
}

TEST(Collectives, SubGroupsInTwoOrders) {
  // Six ranks as 2 x 3, with either axis innermost; the members of the second axis in descending order.
  for (const bool swapped : {false, true}) {
    on_ranks(6, {.delays = 3}, [&](Node& node) {
      const auto row = swapped ? node.rank % 2 : node.rank / 3, column = swapped ? node.rank / 2 : node.rank % 3;
      const auto rank_at = [&](std::int64_t r, std::int64_t c) { return swapped ? c * 2 + r : r * 3 + c; };
      Counts in_row, in_column;
      for (std::int64_t c = 0; c < 3; ++c) in_row.push_back(rank_at(row, c));
      for (std::int64_t r = 1; r >= 0; --r) in_column.push_back(rank_at(r, column));
      const auto members = [](const Counts& ranks) {
        std::vector<Rank> all;
        for (const auto r : ranks) all.push_back(static_cast<Rank>(r));
        return all;
      };
      auto tp = node.world.communicator("tp", members(in_row), "test");
      auto dp = node.world.communicator("dp", members(in_column), "test");
      EXPECT_EQ(tp.place(), column);
      EXPECT_EQ(dp.place(), 1 - row);
      for (const std::int64_t n : {0, 1, 2, 3, 5, 41}) {
        for (auto* group : {&tp, &dp}) {
          const auto& ranks = group == &tp ? in_row : in_column;
          const auto reduced = put(node.queue, "t", {n}, values<std::int64_t>(node.rank, n));
          group->all_reduce(node.queue, reduced, Operator::sum, "p");
          const Tensor gathered(node.queue, {"all", Dtype::i64, {group->size()}, Category::workspace});
          const auto own = put(node.queue, "own", {1}, Counts{node.rank});
          group->all_gather(node.queue, own, gathered, Counts(ranks.size(), 1), "p");
          std::vector<std::int64_t> right;
          for (std::int64_t i = 0; i < n; ++i) right.push_back(expected<std::int64_t>(ranks, i, Operator::sum));
          EXPECT_EQ(fetch<std::int64_t>(node.queue, reduced), right);
          EXPECT_EQ(fetch<std::int64_t>(node.queue, gathered), ranks);
        }
      }
    });
  }
}

TEST(Collectives, FloatsAreSummedInTheOrderOfTheMembers) {
  // 2^60 + 1 - 2^60 is 0, in other orders 1: bits tell the order, which is that of the group, not of the ranks.
  const std::vector<std::vector<std::int64_t>> orders = {{0, 1, 2, 3}, {2, 0, 3, 1}, {3, 2, 1, 0}};
  for (const auto& order : orders) {
    on_ranks(4, {}, [&](Node& node) {
      std::vector<Rank> members;
      for (const auto r : order) members.push_back(static_cast<Rank>(r));
      auto group = node.world.communicator("dp", members, "test");
      const double terms[] = {0x1p60, 1, -0x1p60, 0.5};
      double right = terms[order[0]];
      for (std::size_t k = 1; k < 4; ++k) right += terms[order[k]];
      constexpr std::int64_t n = 1100;  // beyond one block
      const auto tensor = put(node.queue, "t", {n}, std::vector<double>(n, terms[node.rank]));
      group.all_reduce(node.queue, tensor, Operator::sum, "p");
      EXPECT_EQ(fetch<double>(node.queue, tensor), std::vector<double>(n, right));
    });
  }
}

TEST(Collectives, OneMemberGroups) {
  on_ranks(2, {}, [](Node& node) {
    auto alone = node.world.communicator("dp", {node.world.rank()}, "test");
    EXPECT_EQ(alone.size(), 1);
    const auto t = put(node.queue, "t", {3}, values<double>(node.rank, 3));
    const Tensor out(node.queue, {"out", Dtype::f64, {3}, Category::workspace});
    alone.all_reduce(node.queue, t, Operator::sum, "p");
    alone.broadcast(node.queue, t, 0, "p");
    alone.barrier(node.queue, "p");
    alone.all_gather(node.queue, t, out, {3}, "p");
    EXPECT_EQ(fetch<double>(node.queue, out), values<double>(node.rank, 3));
    alone.reduce_scatter(node.queue, out, out, {3}, Operator::sum, "p");
    EXPECT_EQ(fetch<double>(node.queue, out), values<double>(node.rank, 3));
    alone.all_to_all(node.queue, t, out, {3}, {3}, "p");
    EXPECT_EQ(fetch<double>(node.queue, out), values<double>(node.rank, 3));
  });
}

TEST(Collectives, SixtyFourRanks) {
  on_ranks(64, {.delays = 9}, [](Node& node) {
    auto group = node.world.all("test");
    const auto tensor = put(node.queue, "t", {100}, values<std::int32_t>(node.rank, 100));
    group.all_reduce(node.queue, tensor, Operator::sum, "p");
    std::vector<std::int32_t> right;
    for (std::int64_t i = 0; i < 100; ++i) right.push_back(expected<std::int32_t>(iota(64), i, Operator::sum));
    EXPECT_EQ(fetch<std::int32_t>(node.queue, tensor), right);
  });
}

TEST(Collectives, ABarrierHoldsEverybody) {
  on_ranks(5, {.delays = 4}, [](Node& node) {
    auto group = node.world.all("test");
    // On the clock that all threads of a machine share.
    const auto now = [] { return std::int64_t{std::chrono::steady_clock::now().time_since_epoch().count()}; };
    for (int round = 1; round <= 20; ++round) {
      const auto came = now();
      group.barrier(node.queue, "p");
      const auto own = put(node.queue, "own", {2}, Counts{came, now()});
      const Tensor all(node.queue, {"all", Dtype::i64, {10}, Category::workspace});
      group.all_gather(node.queue, own, all, Counts(5, 2), "p");
      const auto times = fetch<std::int64_t>(node.queue, all);
      for (std::size_t k = 0; k < 10; k += 2) EXPECT_LE(times[k], times[2 * static_cast<std::size_t>(node.rank) + 1]);
    }
  });
}

TEST(Collectives, OnTwoQueuesAtOnce) {
  // Each rank gives its two channels to two workers in a different order: neither may wait for the other.
  on_ranks(4, {.delays = 6}, [](Node& node) {
    auto even = node.world.all("even"), odd = node.world.all("odd");
    WorkerQueue first(node.device), second(node.device);
    constexpr std::int64_t calls = 30;
    std::vector<Tensor> tensors;
    for (std::int64_t k = 0; k < 2 * calls; ++k) {
      tensors.push_back(put(node.queue, "t", {9}, values<Fixed>(node.rank, 9, std::to_string(k))));
    }
    std::vector<Work> works;
    const auto go = [&](std::int64_t parity) {
      for (std::int64_t k = parity; k < 2 * calls; k += 2) {
        const auto& t = tensors[static_cast<std::size_t>(k)];
        works.push_back((parity == 0 ? even : odd).all_reduce(parity == 0 ? first : second, t, Operator::sum, "p"));
      }
    };
    go(node.rank % 2);
    go(1 - node.rank % 2);
    for (const auto& work : works) work.before(node.queue);
    for (std::int64_t k = 0; k < 2 * calls; ++k) {
      const auto got = fetch<Fixed>(node.queue, tensors[static_cast<std::size_t>(k)]);
      for (std::int64_t i = 0; i < 9; ++i) {
        const auto right = expected<Fixed>(iota(4), i, Operator::sum, std::to_string(k));
        ASSERT_EQ(got[static_cast<std::size_t>(i)].raw, right.raw);
      }
    }
  });
}

}  // namespace
}  // namespace shardproof::comm
