// SPDX-License-Identifier: Apache-2.0
// Totals of unfinished sums over ranks: one lane where bounds allow it, two where they do not, the true total always.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::error_of, testing::Node, testing::on_ranks;

struct Sum {
  Sum(Node& n, std::int64_t elements, Dtype dtype = Dtype::fixed)
      : node(n), accumulator(n.queue, {"gradient", dtype, {elements}, Category::gradient}) {}

  /// Under the tight bound, unless another is given.
  void add(const std::vector<int128>& values, double bound = -1) {
    if (bound < 0) {
      for (const auto v : values) bound = std::max(bound, std::fabs(static_cast<double>(v)) * 0x1p-40);
    }
    node.queue.submit("add", [&](KernelScope& scope) {
      AccumulatorView<Fixed> view(scope, accumulator, bound);
      for (std::size_t i = 0; i < values.size(); ++i) view.add(static_cast<std::int64_t>(i), {values[i]});
    });
  }
  std::vector<std::int64_t> finish() {
    const auto tensor = accumulator.finish(node.queue);
    overflow = fetch_overflow(node.queue, tensor);
    std::vector<std::int64_t> raws;
    for (const auto v : fetch<Fixed>(node.queue, tensor)) raws.push_back(v.raw);
    return raws;
  }

  Node& node;
  Accumulator accumulator;
  bool overflow = false;
};

Traffic traffic(Node& node, const std::string& purpose = "gradient") {
  return node.world.traffic().counts()[{"world", Kind::all_reduce, purpose}];
}

TEST(AccumulatorAllReduce, OneLaneWhereTheBoundsAllowIt) {
  for (std::int64_t ranks = 1; ranks <= 6; ++ranks) {
    on_ranks(ranks, {.delays = 1}, [&](Node& node) {
      auto group = node.world.all("test");
      for (const std::int64_t n : {0, 1, 2, 5, 70}) {
        Sum sum(node, n);
        std::vector<std::int64_t> right(static_cast<std::size_t>(n));
        for (std::int64_t r = 0; r < ranks; ++r) {
          std::vector<int128> values;
          for (std::int64_t i = 0; i < n; ++i) {
            values.push_back(testing::value<Fixed>(r, i).raw / 4);
            right[static_cast<std::size_t>(i)] += testing::value<Fixed>(r, i).raw / 4;
          }
          if (r == node.rank) sum.add(values);
        }
        group.all_reduce(node.queue, sum.accumulator, "gradient");
        EXPECT_EQ(node.device.memory().current(Category::workspace), 0);  // no second lane
        EXPECT_EQ(sum.finish(), right);
        EXPECT_FALSE(sum.overflow);
      }
      // Nothing is exchanged in a group of one; else five bounds and five sums.
      EXPECT_EQ(traffic(node).calls, ranks == 1 ? 0 : 10);
      EXPECT_EQ(traffic(node).payload_bytes, ranks == 1 ? 0 : 8 * (5 + 0 + 1 + 2 + 5 + 70));
      EXPECT_EQ(node.device.memory().peak(Category::communication), ranks == 1 ? 0 : 8);
    });
  }
}

TEST(AccumulatorAllReduce, TwoLanesFromTheBoundOn) {
  // 2^21 in all is where one lane ends; each rank alone has one.
  for (const bool wide : {false, true}) {
    on_ranks(4, {}, [&](Node& node) {
      auto group = node.world.all("test");
      Sum sum(node, 3);
      sum.add({5 + node.rank, -7, 0}, wide && node.rank == 2 ? 0x1p19 : 0x1p19 - 1);
      sum.add({0, 0, 0}, wide ? 1 : 0);
      group.all_reduce(node.queue, sum.accumulator, "gradient");
      EXPECT_EQ(node.device.memory().current(Category::workspace), wide ? 24 : 0);
      // The ledger keeps the second lane apart: what values need is not in the forms of a technique.
      EXPECT_EQ(traffic(node).payload_bytes, 8 + 24);
      EXPECT_EQ(traffic(node, "second_lane").payload_bytes, wide ? 24 : 0);
      // Its bound is the total's: what is added next, and another sum over ranks, judge by it.
      sum.add({1, 1, 1}, wide ? 0 : 8);
      EXPECT_EQ(node.device.memory().current(Category::workspace), 24);
      EXPECT_EQ(sum.finish(), (std::vector<std::int64_t>{5 + 6 + 7 + 8 + 1, -27, 1}));
      EXPECT_FALSE(sum.overflow);
    });
  }
}

TEST(AccumulatorAllReduce, PartialSumsMayWrapAndReturn) {
  const int128 huge = static_cast<int128>(1) << 90;
  on_ranks(5, {.chunk_elements = 3}, [&](Node& node) {
    auto group = node.world.all("test");
    // Ranks 0 and 1 hold what only ranks 3 and 4 take away; rank 2 has one lane and joins with two.
    const std::vector<std::vector<int128>> parts = {
        {huge, fixed_limit - 1, huge + 3, -1, 0, -huge},
        {huge, fixed_limit - 1, -huge, -1, 0, 5},
        {1, -1, -1, -1, 0, 7},
        {-huge, -fixed_limit, huge, -1, 0, huge},
        {-huge, -5, -huge, -1, 0, -fixed_limit},
    };
    Sum sum(node, 6);
    sum.add(parts[static_cast<std::size_t>(node.rank)]);
    EXPECT_EQ(node.device.memory().current(Category::workspace), node.rank == 2 ? 0 : 48);
    group.all_reduce(node.queue, sum.accumulator, "gradient");
    EXPECT_EQ(sum.finish(), (std::vector<std::int64_t>{1, fixed_limit - 8, 2, -5, 0, 12 - fixed_limit}));
    EXPECT_FALSE(sum.overflow);
  });
}

TEST(AccumulatorAllReduce, TotalsOutOfRangeAreFlagged) {
  // Just out of range, beyond 2^63, and 5 modulo 2^64, on both sides; no rank's own part is out of range but the
  // last's.
  for (const int128 total : {static_cast<int128>(fixed_limit), static_cast<int128>(fixed_limit) * 2,
                             (static_cast<int128>(1) << 64) + 5, (static_cast<int128>(1) << 100) + 5}) {
    for (const int128 sign : {1, -1}) {
      on_ranks(3, {}, [&](Node& node) {
        auto group = node.world.all("test");
        Sum sum(node, 2);
        sum.add({node.rank == 2 ? sign * (total / 2 + total % 2)
                                : sign * (total / 4) + (node.rank == 0 ? sign * (total / 2 % 2) : 0),
                 4});
        group.all_reduce(node.queue, sum.accumulator, "gradient");
        EXPECT_EQ(sum.finish(), (std::vector<std::int64_t>{fixed_invalid, 12}));
        EXPECT_TRUE(sum.overflow);
        EXPECT_TRUE(node.device.overflow());
      });
    }
  }
}

TEST(AccumulatorAllReduce, TheVerdictIsThatOfOneRank) {
  // Random parts whose totals lie around the limit, cut over ranks in two ways under loose and tight bounds.
  constexpr std::int64_t parts = 12, elements = 50;
  std::vector<std::vector<int128>> values(parts, std::vector<int128>(elements));
  std::vector<std::int64_t> right;
  for (std::int64_t i = 0; i < elements; ++i) {
    int128 total = 0;
    for (std::int64_t p = 0; p < parts; ++p) {
      const auto v = testing::value<std::int64_t>(p, i) >> (i % 4);
      values[static_cast<std::size_t>(p)][static_cast<std::size_t>(i)] = v;
      total += v;
    }
    right.push_back(finish<Fixed>({total}).raw);
  }
  const auto invalid = std::ranges::count(right, fixed_invalid);
  ASSERT_TRUE(invalid > 5 && invalid < 45);
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    for (const double bound : {-1.0, 1e9, std::nan("")}) {
      on_ranks(ranks, {.delays = 2}, [&](Node& node) {
        auto group = node.world.all("test");
        Sum sum(node, elements);
        for (std::int64_t p = node.rank; p < parts; p += ranks) sum.add(values[static_cast<std::size_t>(p)], bound);
        group.all_reduce(node.queue, sum.accumulator, "gradient");
        EXPECT_EQ(sum.finish(), right);
        EXPECT_TRUE(sum.overflow);
      });
    }
  }
}

TEST(AccumulatorAllReduce, FlagsTravelWithOneLaneAndTwo) {
  for (const double bound : {1.0, 1e9}) {
    on_ranks(3, {}, [&](Node& node) {
      auto group = node.world.all("test");
      Sum sum(node, 2);
      sum.add({1, 2}, bound);
      if (node.rank == 1) {
        node.queue.submit("raise", [&](KernelScope& scope) {
          AccumulatorView<Fixed> view(scope, sum.accumulator, 0);
          scope.raise_overflow();
        });
      }
      group.all_reduce(node.queue, sum.accumulator, "gradient");
      sum.finish();
      EXPECT_TRUE(sum.overflow) << bound;
      EXPECT_TRUE(node.device.overflow());
      // The next step starts clean.
      sum.accumulator.restart(node.queue);
      node.device.clear_overflow();
      sum.add({1, 2});
      group.all_reduce(node.queue, sum.accumulator, "gradient");
      EXPECT_EQ(sum.finish(), (std::vector<std::int64_t>{3, 6}));
      EXPECT_FALSE(sum.overflow || node.device.overflow());
    });
  }
}

TEST(AccumulatorAllReduce, FloatsGoInOneCall) {
  on_ranks(3, {}, [](Node& node) {
    auto group = node.world.all("test");
    for (const auto dtype : {Dtype::f64, Dtype::f32}) {
      Accumulator sum(node.queue, {"gradient", dtype, {2}, Category::gradient});
      dispatch(dtype, [&]<class S>(S) {
        node.queue.submit("add", [&](KernelScope& scope) {
          AccumulatorView<S> view(scope, sum, 1e30);
          if constexpr (!std::is_same_v<S, Fixed>) view.add(0, static_cast<S>(node.rank) + S{0.5});
        });
      });
      group.all_reduce(node.queue, sum, "gradient");
      EXPECT_EQ(shardproof::testing::doubles(node.queue, sum.finish(node.queue)), (std::vector<double>{4.5, 0}));
    }
    EXPECT_EQ(traffic(node).calls, 2);
  });
}

TEST(AccumulatorAllReduce, NotAfterTheFinish) {
  on_ranks(2, {}, [](Node& node) {
    auto group = node.world.all("test");
    Sum sum(node, 2);
    sum.finish();
    EXPECT_NE(error_of<InternalError>([&] { group.all_reduce(node.queue, sum.accumulator, "gradient"); }), "no error");
  });
}

TEST(WideTotalAllReduce, IsTheWideTotalOfAllTerms) {
  // Terms whose double sum would lose the small ones; lanes carry into each other only at the end.
  on_ranks(4, {.delays = 1}, [](Node& node) {
    auto group = node.world.all("test");
    for (const auto scalar : {Dtype::fixed, Dtype::f64, Dtype::f32}) {
      const WideTotal total(node.queue, scalar, "norm");
      node.queue.submit("add", [&](KernelScope& scope) {
        if (scalar == Dtype::fixed) {
          WideSum sum;
          const int128 big = static_cast<int128>(1) << 120;
          sum.add(node.rank == 0 ? big : node.rank == 1 ? -big + 1 : (static_cast<int128>(1) << 32) - 1);
          std::copy_n(sum.lane.begin(), 4, scope.update<std::int64_t>(total.tensor()));
        } else {
          *scope.update<double>(total.tensor()) = static_cast<double>(node.rank + 1);
        }
      });
      group.all_reduce(node.queue, total, "norm");
      EXPECT_EQ(total.fetch(node.queue), scalar == Dtype::fixed ? 0x1p33 - 1 : 10.0);
    }
  });
}

}  // namespace
}  // namespace shardproof::comm
